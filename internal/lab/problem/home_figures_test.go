package problem

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

var (
	figureHomes = flag.Int("figures", 0, "how many homes TestHome_Figures draws")
	figureFiles = flag.String("programs", "", "the folder to which TestHome_Figures writes each home as a programme for other solvers")
	figureOne   = flag.Int("figure", -1, "the one home that TestHome_Figures plans")
)

// processorTime returns the processor time of this thread: it does not grow while other
// threads run.
func processorTime() time.Duration {
	const thread = 3 // CLOCK_THREAD_CPUTIME_ID
	var at syscall.Timespec
	_, _, _ = syscall.Syscall(syscall.SYS_CLOCK_GETTIME, thread, uintptr(unsafe.Pointer(&at)), 0)
	return time.Duration(at.Nano())
}

// homeFigures are what the plans of one sub-family came to.
type homeFigures struct {
	millis, gaps, nodes, pivots []float64
	closed, near                int
}

func (f *homeFigures) add(millis, gap float64, h *homeProblem) {
	f.millis, f.gaps = append(f.millis, millis), append(f.gaps, gap)
	f.nodes, f.pivots = append(f.nodes, float64(h.result.Nodes)), append(f.pivots, float64(h.result.Pivots))
	if gap <= 1e-6 {
		f.closed++
	}
	if gap <= 1e-3 {
		f.near++
	}
}

func median(v []float64) float64 { return slices.Sorted(slices.Values(v))[len(v)/2] }

// TestHome_Figures draws homes of 48 and 96 half-hours, and logs the figures of
// docs/engine-home.md. It only fails if the check of a plan does.
func TestHome_Figures(t *testing.T) {
	if *figureHomes == 0 {
		t.Skip("-figures N draws N homes")
	}
	runtime.LockOSThread()
	carAloneFigures(t)
	d := newHomeDraw(t, 21)
	var w Scratch
	of := map[string]*homeFigures{}

	for i := range *figureHomes {
		family := homeFamilies[i%len(homeFamilies)]
		l := d.home(family, 48+48*(i/len(homeFamilies)%2))
		line := l.line(t, fmt.Sprintf("%s-%d", family, i))
		if *figureOne >= 0 && i != *figureOne {
			continue
		}
		p, err := Decode(line)
		if err != nil {
			continue // more load than the fuse carries
		}

		millis := 1e6
		for range 2 { // the first fills caches and grows memory
			began := processorTime()
			p.Plan(&w)
			millis = min(millis, float64(processorTime()-began)/1e6)
			if millis > 50 {
				break
			}
		}

		if err := p.Check(&w); err != nil {
			t.Errorf("%s-%d: %v", family, i, err)
			continue
		}

		h := p.solver.(*homeProblem)
		r := h.result
		gap := (r.Cost - r.Bound) / max(1, r.Gross)
		if *figureFiles != "" {
			writePrograms(t, *figureFiles, fmt.Sprintf("%s-%d", family, i), &l, h, millis)
		}

		for _, name := range []string{family, "every one"} {
			if of[name] == nil {
				of[name] = &homeFigures{}
			}
			of[name].add(millis, gap, h)
		}
		if gap > 1e-3 || millis > 100 {
			t.Logf("%s-%d: %d slots, gap %.3f %%, %.1f ms, %d nodes, %d pivots, cost %.3f", family, i, len(l.Load), 100*gap, millis, r.Nodes, r.Pivots, r.Cost)
		}
	}

	for _, name := range append(slices.Clone(homeFamilies), "every one") {
		f := of[name]
		if f == nil || len(f.gaps) == 0 {
			continue
		}
		t.Logf("%-10s %3d homes, closed %3d, <= 0.1 %% %3d, worst gap %.3f %%, ms median %.2f worst %.1f, nodes %.0f/%.0f, pivots %.0f/%.0f", name, len(f.gaps),
			f.closed, f.near, 100*slices.Max(f.gaps), median(f.millis), slices.Max(f.millis),
			median(f.nodes), slices.Max(f.nodes), median(f.pivots), slices.Max(f.pivots))
	}
}

// writePrograms writes a home as three programmes, each with the best values of those before
// it, and the figures of its plan.
func writePrograms(t *testing.T, folder, name string, l *homeLine, h *homeProblem, millis float64) {
	t.Helper()
	o, g := newOracle(l)
	programs := []string{o.program(g.shorts)}
	o.rows = append(o.rows, oracleRow{inOrder(g.shorts), true, h.result.Shortfall + 1e-6})
	programs = append(programs, o.program(g.peaks))
	o.rows = append(o.rows, oracleRow{inOrder(g.peaks), true, h.result.Peak + 1e-6})
	programs = append(programs, o.program(g.price))

	for i, program := range programs {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%s.%d.lp", name, i)), []byte(program), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := h.result
	figures := fmt.Sprintf(`{"cost": %v, "bound": %v, "constant": %v, "gross": %v, "shortfall": %v, "peak": %v, "optimal": %v, "ms": %v}`,
		r.Cost, r.Bound, g.constant, r.Gross, r.Shortfall, r.Peak, r.Optimal, millis)
	if err := os.WriteFile(filepath.Join(folder, name+".json"), []byte(figures), 0o600); err != nil {
		t.Fatal(err)
	}
}

// carAloneFigures logs the time of a plan over 96 half-hours for a home whose only device is a
// car that discharges.
func carAloneFigures(t *testing.T) {
	d := newHomeDraw(t, 31)
	var w Scratch
	var micros []float64
	for range 60 {
		p, err := Decode(aloneDraw(d, 96).line(t, "alone"))
		if err != nil {
			continue
		}

		least := math.Inf(1)
		for range 20 {
			began := processorTime()
			p.Plan(&w)
			least = min(least, float64(processorTime()-began)/1e3)
		}
		if p.solver.(*homeProblem).result.Pivots == 0 {
			micros = append(micros, least)
		}
	}
	t.Logf("a car that discharges by itself, %d of 60 by its slopes: median %.1f us, worst %.1f", len(micros), median(micros), slices.Max(micros))
}
