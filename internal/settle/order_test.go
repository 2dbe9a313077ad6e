package settle_test

import (
	"reflect"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

func TestOrder_Detect(t *testing.T) {
	day := flex.Day{Year: 2026, Month: time.January, Dom: 14}
	start := day.Period(35).Start() // 17:00
	minutes := func(from, to int) flex.Span {
		return flex.Span{From: start.Add(time.Duration(from) * time.Minute), To: start.Add(time.Duration(to) * time.Minute)}
	}
	event := func(first int, meant ...flex.WattHours) settle.Event {
		return settle.Event{Day: day, First: first, Last: first + len(meant) - 1, Meant: meant}
	}

	for _, c := range []struct {
		name  string
		order settle.Order
		want  []settle.Event
	}{
		{"idle without the market", settle.Order{Span: minutes(0, 30), Power: -3000}, []settle.Event{event(35, -1500)}},
		{"it would have done the same", settle.Order{Span: minutes(0, 30), Power: -3000, Without: []flex.Watts{-3000}}, nil},
		{"it would have done nearly the same", settle.Order{Span: minutes(0, 30), Power: -3000, Without: []flex.Watts{-2902}}, nil},
		{"it would have charged", settle.Order{Span: minutes(0, 30), Power: -3000, Without: []flex.Watts{1000}}, []settle.Event{event(35, -2000)}},
		{"two half-hours", settle.Order{Span: minutes(0, 60), Power: -3000, Without: []flex.Watts{1000, -1000}}, []settle.Event{event(35, -2000, -1000)}},
		{"the other way in the second", settle.Order{Span: minutes(0, 60), Power: 0, Without: []flex.Watts{1000, -1000}}, []settle.Event{event(35, -500), event(36, 500)}},
		{"ten minutes on both sides of 17:30", settle.Order{Span: minutes(20, 40), Power: -3000}, []settle.Event{event(35, -500, -500)}},
		{"more than it can move", settle.Order{Span: minutes(0, 30), Power: -50_000}, []settle.Event{event(35, -2500)}},
		{"more than it could have had", settle.Order{Span: minutes(0, 30), Power: 5000, Without: []flex.Watts{-50_000}}, []settle.Event{event(35, 5000)}},
		{"taken over in the middle", settle.Order{Span: minutes(0, 60), Power: -3000, AcceptedAt: start.Add(45 * time.Minute)}, []settle.Event{event(36, -750)}},
		{"taken over when it was over", settle.Order{Span: minutes(0, 60), Power: -3000, AcceptedAt: start.Add(time.Hour)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.order.Rated = 5000
			if got := (settle.Orders{c.order}).Detect(c.order.Span, settle.LeastFlexed); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
