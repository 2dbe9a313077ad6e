package envelope

import (
	"fmt"
	"testing"
)

// BenchmarkShared is the windows and a profile of 5,000 homes with two cars behind a fuse that carries one and a half of them, and of a
// depot with 200 cars.
func BenchmarkShared(b *testing.B) {
	for _, c := range []struct{ sites, cars int }{{5000, 2}, {1, 200}} {
		f := evening(c.sites * c.cars)
		for i := range c.sites {
			var cars []int
			carries := make([]Joules, f.slots)
			for k := range c.cars {
				cars = append(cars, i*c.cars+k)
				for t := range carries {
					carries[t] += 3 * Joules(f.cars[i*c.cars+k].Power) * 1800 / 4
				}
			}

			f.Share(carries, cars)
		}

		profile := between(f)
		b.Run(fmt.Sprintf("windows/%dx%d", c.sites, c.cars), func(b *testing.B) {
			for b.Loop() {
				f.Envelope().Windows()
			}
		})
		b.Run(fmt.Sprintf("follow/%dx%d", c.sites, c.cars), func(b *testing.B) {
			for b.Loop() {
				if a := f.Follow(f.all(), profile); !a.Follows {
					b.Fatalf("%+v", a.Certificate)
				}
			}
		})

		over := append([]Joules(nil), profile...)
		over[1] = f.Envelope().Most(Window(1, 2)) + 1
		b.Run(fmt.Sprintf("refuse/%dx%d", c.sites, c.cars), func(b *testing.B) {
			for b.Loop() {
				if a := f.Follow(f.all(), over); a.Follows {
					b.Fatal("it asks for too much")
				}
			}
		})
	}
}
