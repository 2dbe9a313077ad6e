package adr

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// TestRequested: when which intervals are reported, as the specification describes the fields
// of a request.
func TestRequested(t *testing.T) {
	start := time.Date(2026, 1, 15, 18, 0, 0, 0, time.UTC)
	for name, x := range map[string]struct{ request, want string }{
		"as it is left out":          {`{}`, "20:00 [0 1 2 3];"},
		"the last two":               {`{"numIntervals":2}`, "20:00 [2 3];"},
		"each when it is over":       {`{"startInterval":11,"numIntervals":1,"frequency":1,"repeat":-1}`, "18:30 [0];19:00 [1];19:30 [2];20:00 [3];"},
		"two of them":                {`{"startInterval":11,"numIntervals":1,"frequency":1,"repeat":2}`, "18:30 [0];19:00 [1];"},
		"every two":                  {`{"startInterval":12,"numIntervals":2,"repeat":-1}`, "19:00 [0 1];20:00 [2 3];"},
		"nothing is before":          {`{"startInterval":10}`, ""},
		"a forecast":                 {`{"startInterval":10,"historical":false}`, "18:00 [0 1 2 3];"},
		"a forecast of the next":     {`{"startInterval":10,"numIntervals":1,"historical":false,"repeat":-1}`, "18:00 [0];18:30 [1];19:00 [2];19:30 [3];"},
		"a forecast at the end":      {`{"historical":false}`, ""},
		"an interval there is not":   {`{"startInterval":3}`, ""},
		"all, again and again":       {`{"frequency":1,"repeat":-1}`, "20:00 [0 1 2 3];"},
		"of no interval":             {`{"numIntervals":0}`, ""},
		"longer than the event is":   {`{"numIntervals":99,"repeat":-1}`, "20:00 [0 1 2 3];"},
		"as null, as it is left out": {`{"startInterval":null,"repeat":null}`, "20:00 [0 1 2 3];"},
	} {
		t.Run(name, func(t *testing.T) {
			d := eventDocument{Period: periodDocument{Start: start.Format(time.RFC3339), Length: "PT30M"}, ReportRequests: make([]reportRequest, 1)}
			for i := range 4 {
				d.Intervals = append(d.Intervals, intervalDocument{ID: 10 + i})
			}
			if err := json.Unmarshal([]byte(x.request), &d.ReportRequests[0]); err != nil {
				t.Fatal(err)
			}

			got := ""
			for _, w := range d.requestedReports(d.timedIntervals(start)) {
				got += fmt.Sprint(w.at.Format("15:04 "), w.intervals, ";")
			}
			if got != x.want {
				t.Errorf("%q, not %q", got, x.want)
			}
		})
	}

	endless := eventDocument{Period: periodDocument{Start: start.Format(time.RFC3339)}, Intervals: []intervalDocument{{ID: 1}}, ReportRequests: []reportRequest{{Start: -1, Num: -1, Historical: true, Repeat: -1}}}
	if got := endless.requestedReports(endless.timedIntervals(start)); len(got) > 0 {
		t.Errorf("of an event without an end: %+v", got)
	}

	many := eventDocument{Period: periodDocument{Start: start.Format(time.RFC3339), Length: "PT1S"}, Intervals: make([]intervalDocument, 9000), ReportRequests: []reportRequest{{Num: 1, Frequency: 1, Repeat: -1}}}
	if got := many.requestedReports(many.timedIntervals(start)); len(got) != reportRequestsMax {
		t.Errorf("%d reports of one event", len(got))
	}
}
