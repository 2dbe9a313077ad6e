package portal

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reward"
)

// speech is a language that pages are written in. A message is named by its English text, in which {1},
// {2} and so on stand for what is put in.
type speech struct {
	tag   string            // as in HTML's lang
	words map[string]string // by the English text; none for English
	// of months and days of the week, from English; nil for English
	names *strings.Replacer
	comma bool // numbers have a decimal comma; amounts of money have a point in all languages
}

// speeches are the languages there are, the one that is taken without a choice first.
var speeches = []*speech{
	{tag: "en"},
	{tag: "de", words: german, names: germanNames, comma: true},
}

// say returns a message with what is put in.
func (l *speech) say(text string, args ...any) string {
	if other, known := l.words[text]; known {
		text = other
	}

	for i, a := range args {
		text = strings.ReplaceAll(
			text,
			"{"+strconv.Itoa(i+1)+"}",
			l.put(a),
		)
	}

	return text
}

// put writes what is put into a message.
func (l *speech) put(a any) string {
	switch v := a.(type) {
	case flex.Pence:
		return pounds(v)
	case flex.WattHours:
		return l.decimal(short(v))
	case float64:
		return l.decimal(fmt.Sprint(v))
	}

	return fmt.Sprint(a)
}

// decimal writes a number that has a decimal point as the language does.
func (l *speech) decimal(number string) string {
	if !l.comma {
		return number
	}
	return strings.ReplaceAll(number, ".", ",")
}

// when writes an instant by a zone's clocks, in a form that is a message itself.
func (l *speech) when(t time.Time, zone *time.Location, layout string) string {
	text := flex.Clock(t, zone, l.say(layout))
	if l.names == nil {
		return text
	}

	return l.names.Replace(text)
}

// day writes the London day of an instant.
func (l *speech) day(t time.Time) string {
	return l.when(t, flex.London, "2 January 2006")
}

// clock writes an instant by London's clocks.
func (l *speech) clock(t time.Time) string {
	return l.when(t, flex.London, "2 January, 15:04")
}

// long writes a day.
func (l *speech) long(d flex.Day) string {
	return l.when(
		time.Date(d.Year, d.Month, d.Dom, 0, 0, 0, 0, time.UTC),
		time.UTC,
		"2 January 2006",
	)
}

// span writes a time of at most some days by London's clocks.
func (l *speech) span(s flex.Span) string {
	if flex.DayAt(s.From) == flex.DayAt(s.To.Add(-1)) {
		return l.say("{1} to {2}", l.clock(s.From), clockIn(s.To, flex.London))
	}
	return l.say("{1} to {2}", l.clock(s.From), l.clock(s.To))
}

// languageCookie keeps the language that a link was opened in.
const languageCookie = "flexd_language"

// speechOf chooses the language of a request: the link's own lang, the one that its browser keeps of it, or
// the first of those it accepts that there is.
func speechOf(w http.ResponseWriter, r *http.Request) *speech {
	asked := speechNamed(r.URL.Query().Get("lang"))
	if asked != nil {
		http.SetCookie(w, &http.Cookie{
			Name:     languageCookie,
			Value:    asked.tag,
			Path:     reward.Root + r.PathValue("token"),
			HttpOnly: true,
			SameSite: http.SameSiteLaxMode,
		})

		return asked
	}

	if c, err := r.Cookie(languageCookie); err == nil {
		if kept := speechNamed(c.Value); kept != nil {
			return kept
		}
	}

	for accepted := range strings.SplitSeq(
		r.Header.Get("Accept-Language"),
		",",
	) {
		tag, _, _ := strings.Cut(strings.TrimSpace(accepted), ";")
		if known := speechNamed(tag); known != nil {
			return known
		}
	}

	return speeches[0]
}

// speechNamed returns the language of a tag, whatever the region behind it, or nil.
func speechNamed(tag string) *speech {
	language, _, _ := strings.Cut(strings.ToLower(tag), "-")
	for _, l := range speeches {
		if l.tag == language {
			return l
		}
	}

	return nil
}
