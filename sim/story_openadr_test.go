package sim_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"flexd/internal/adr"
	"flexd/internal/flex"
)

// dispatcher is a grid operator's business logic, of a program that is bound to the fleet.
type dispatcher struct {
	program, event flex.ADRObjectID // zero until there is one
}

// actOpenADR plays a line of a dispatcher; false if it is none.
func (p *player) actOpenADR() bool {
	p.Helper()
	a := p.line.Args

	switch p.line.Verb {
	case "event":
		p.dispatch(a[0], p.number(a[1]), p.clock(a[2]), p.clock(a[3]))
	case "event gone":
		_, err := p.app.ADR.Delete(p.Context(), p.business(), flex.ADREvent, p.openADR.event)
		p.must(err)
	case "limit":
		l := flex.CapLimit{Group: "feeder", Span: flex.Span{From: p.clock(a[1]), To: p.clock(a[2])}, Power: flex.FromKW(p.number(a[0]))}

		p.must(p.app.Control.ImportLimits(p.Context(), p.org, []flex.CapLimit{l}))
	case "fallback":
		after, err := time.ParseDuration(a[1])
		p.must(err)
		p.must(p.app.Control.SetLink(p.Context(), p.org, flex.CapLink{Group: "feeder", Fallback: new(flex.FromKW(p.number(a[0]))), Silence: after}))
	case "feeder heartbeat":
		p.must(p.app.Control.LinkAlive(p.Context(), p.org, "feeder"))
	default:
		return false
	}
	return true
}

func (p *player) business() adr.Client {
	return adr.Client{Org: p.org, ID: "dispatcher", Business: true}
}

// write keeps an OpenADR object as a dispatcher does.
func (p *player) write(kind flex.ADRKind, document string) flex.ADRObjectID {
	p.Helper()
	var read any
	p.must(json.Unmarshal([]byte(document), &read))
	o, err := p.app.ADR.Create(p.Context(), p.business(), kind, read)
	p.must(err)
	return o.ID
}

// dispatch creates an event of a program that is bound to the whole fleet.
func (p *player) dispatch(how string, kw float64, from, to time.Time) {
	p.Helper()
	if p.openADR.program.IsZero() {
		p.openADR.program = p.write(flex.ADRProgram, `{"programName":"fleet"}`)
		_, err := p.app.ADR.Bind(p.Context(), p.org, &flex.ADRBinding{Program: p.openADR.program, Service: "dno", Who: "story"}, true)
		p.must(err)
	}

	of := "DISPATCH_SETPOINT_RELATIVE"
	switch how {
	case "less":
		kw = -kw
	case "at most":
		of = "IMPORT_CAPACITY_LIMIT"
	}

	p.openADR.event = p.write(flex.ADREvent, fmt.Sprintf(
		`{"programID":%q,"intervalPeriod":{"start":%q,"duration":"PT%dM"},"intervals":[{"id":0,"payloads":[{"type":%q,"values":[%g]}]}]}`,
		p.openADR.program, adr.Instant(from), int(to.Sub(from).Minutes()), of, kw))
}

// expectOpenADR holds what a dispatcher reads against what should be.
func (p *player) expectOpenADR() {
	p.Helper()
	if p.line.Verb != "expect report" {
		p.expectBattery()
		return
	}

	found, err := p.app.ADR.Search(p.Context(), p.business(), flex.ADRSearch{Kind: flex.ADRReport, Event: p.openADR.event})
	p.must(err)
	if len(found) != 1 {
		p.wrong("there are %d reports", len(found))
		return
	}

	var d struct {
		Resources []struct {
			Intervals []struct {
				Payloads []struct {
					Type   string
					Values []any
				}
			}
		}
	}

	p.must(json.Unmarshal([]byte(found[0].ADRObject.Document), &d))
	state, change := "", math.NaN()
	for _, x := range d.Resources[0].Intervals[0].Payloads {
		switch x.Type {
		case "FLEXD_STATE":
			state, _ = x.Values[0].(string)
		case "DELTA_USAGE":
			change, _ = x.Values[0].(float64)
		}
	}

	near := math.Abs(change+p.number(p.line.Args[1])) <= 0.13
	if !strings.EqualFold(state, p.line.Args[0]) || !near {
		p.wrong("it says %s, %g kWh: %s", state, change, found[0].ADRObject.Document)
	}
}
