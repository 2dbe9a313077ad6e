package portal

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"net/http"
	"sync"

	"flexd/internal/web"
)

//go:embed element.js
var elementSource []byte

// elementWords are the messages of the element to embed, by the names that its script has for
// them. What is put in, the script puts in.
func elementWords(l *speech) map[string]string {
	return map[string]string{
		"incomplete": l.say("Nothing can be shown: the page gives no site or no token."),
		"none":       l.say("No car is plugged in."),
		"unplanned":  l.say("A car is plugged in. There is no plan for it: it is not controlled."),
		"nothing":    l.say("It does not charge any more tonight."),
		"span":       l.say("{1} to {2}"),
		"charges":    l.say("It charges {1}: {2} kWh by {3}."),
		"charged":    l.say("It was planned to charge {1}: {2} kWh by {3}. Nothing more is planned until then."),
		"over":       l.say("By {1} the plan was over: what the car charges now is not planned."),
		"short":      l.say("Of what was asked for, {1} kWh will be missing by {2}."),
		"cost":       l.say("At market prices that costs {1}."),
		"brings":     l.say("At market prices that brings {1}."),
		"picture":    l.say("Prices of the plan, filled where the car charges"),
		"unpriced":   l.say("No price is known for the hours with a dashed outline."),
		"now":        l.say("Charge for an hour now"),
		"back":       l.say("Back to the plan"),
		"broken":     l.say("This cannot be shown at the moment."),
	}
}

// element is the script of the element to embed, with its messages in every language.
var element = sync.OnceValue(func() []byte {
	all := map[string]map[string]string{}
	for _, l := range speeches {
		all[l.tag] = elementWords(l)
	}

	text, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}

	return bytes.Replace(elementSource, []byte("{/* words */}"), text, 1)
})

// serveElement answers with the script, to pages of any origin: it holds nothing of a household.
func serveElement(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	web.SetHeaders(h, r, web.PolicyNothing)
	h.Set("Content-Type", "text/javascript; charset=utf-8")
	h.Set("Cache-Control", "public, max-age=3600")
	h.Set("Access-Control-Allow-Origin", "*") // a module is asked for with CORS
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	w.Write(element())
}
