package product_test

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/product"
)

// FuzzReadProducts: a product that is read asks for something, at a price, in whole minutes.
func FuzzReadProducts(f *testing.F) {
	header := strings.Join(product.Columns, ",")
	f.Add(header + "\nA1,dno,2026-01-15T18:00:00Z,2026-01-15T19:00:00Z,100,250\n")
	f.Add(header + ",direction,answer_by\nA1,cm,2026-01-15T18:00:00Z,2026-01-15T19:00:00Z,1e-9,1e-9,up,2026-01-15T17:00:00Z\n")
	f.Add(header + ",group,\nA1,dfs,2026-01-15T18:00:01Z,2026-01-15T19:00:00Z,1,1,g,\n")
	f.Add(header + "\nA1,dfs,2026-01-15T18:00:00Z,2026-01-15T19:00:00Z,NaN,-0\n\"")

	f.Fuzz(func(t *testing.T, text string) {
		products, err := product.Read(strings.NewReader(text), "somebody")
		if err != nil {
			if flex.KindOf(err) != flex.Invalid {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}

		for _, p := range products {
			asks := p.Change != 0 && p.Price > 0 && p.Who == "somebody"
			whole := p.From.Truncate(time.Minute).Equal(p.From) && p.From.Before(p.To)
			if !asks || !whole {
				t.Fatalf("%q: %+v", text, p)
			}
		}
	})
}
