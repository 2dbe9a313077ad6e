package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"flexd/client"
)

// asked notes what a client asks for.
type asked struct{ operations map[string]string } // "POST /caps" to what was sent

// ServeHTTP answers null to everything, and with a token who asks for one.
func (a *asked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/auth/token-form" {
		fmt.Fprint(w, `{"access_token": "token"}`)
	} else {
		fmt.Fprint(w, `null`)
	}

	a.operations[r.Method+" "+r.URL.EscapedPath()] = r.URL.RawQuery
}

// callAll calls every method of the client but Do, and FollowSite, which does not end by itself, with
// arguments that are not zero where a path is made of them.
func callAll(t *testing.T, c *client.Client, but string) {
	t.Helper()
	v := reflect.ValueOf(c)

	for i := range v.NumMethod() {
		name := v.Type().Method(i).Name
		if name == "Do" || name == "FollowSite" || name == but {
			continue
		}

		kind := v.Method(i).Type()
		args := []reflect.Value{reflect.ValueOf(t.Context())}
		for n := 1; n < kind.NumIn(); n++ {
			args = append(args, argument(kind.In(n)))
		}

		out := v.Method(i).Call(args)
		if err, failed := out[len(out)-1].Interface().(error); failed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func argument(kind reflect.Type) reflect.Value {
	v := reflect.New(kind).Elem()
	switch {
	case kind.Kind() == reflect.String:
		v.SetString("x")
	case kind.Kind() == reflect.Array:
		v.Index(0).SetUint(1)
	case kind == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(1_800_000_000, 0)))
	}

	return v
}

// missed lists the operations of the document that nothing asked for.
func missed(t *testing.T, a *asked) (list []string) {
	t.Helper()
	source, err := os.ReadFile("../internal/api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}

	doc, err := openapi3.NewLoader().LoadFromData(source)
	if err != nil {
		t.Fatal(err)
	}

	for pattern, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if !a.has(method, pattern) {
				list = append(list, op.OperationID)
			}
		}
	}

	return list
}

// has reports whether a request was made that the pattern describes and that names no
// operation without parameters.
func (a *asked) has(method, pattern string) bool {
	want := strings.Split(pattern, "/")
	for request := range a.operations {
		path, ok := strings.CutPrefix(request, method+" ")
		if ok && describes(want, strings.Split(path, "/")) {
			return true
		}
	}

	return false
}

func describes(want, got []string) bool {
	if len(want) != len(got) {
		return false
	}

	for i := range want {
		isID := got[i] == "x" || strings.HasPrefix(got[i], "01000000-")
		if want[i] != got[i] && !(isID && strings.HasPrefix(want[i], "{")) {
			return false
		}
	}

	return true
}

// TestComplete holds the client against the document: every operation has a method, and one
// that is taken away is missed.
func TestComplete(t *testing.T) {
	a := &asked{operations: map[string]string{}}
	server := httptest.NewServer(a)
	defer server.Close()

	callAll(t, client.New(server.URL, "acme", "secret"), "Replay")
	if got := missed(t, a); len(got) != 1 || got[0] != "replay_delivery" {
		t.Errorf("without the method Replay these are missed: %v", got)
	}

	callAll(t, client.New(server.URL, "acme", "secret"), "")
	if got := missed(t, a); len(got) > 0 {
		t.Errorf("the client has no method for %v", got)
	}
}

// TestQueries sends parameters of every kind, and those that are zero not at all.
func TestQueries(t *testing.T) {
	a := &asked{operations: map[string]string{}}
	server := httptest.NewServer(a)
	defer server.Close()

	c := client.New(server.URL, "acme", "secret")
	at := client.At(time.Date(2026, time.March, 4, 18, 0, 0, 0, time.UTC))
	_, err := c.Deliveries(t.Context(), client.DeliveryListQuery{AssetID: charger, Since: at, Status: "failed", Limit: 20})
	if err != nil {
		t.Error(err)
	}

	const want = "asset_id=00000000-0000-0000-0000-000000000001&limit=20&since=2026-03-04T18%3A00%3A00Z&status=failed"
	if got := a.operations["GET /deliveries"]; got != want {
		t.Errorf("asked with %s", got)
	}

	if _, err := c.Instruct(t.Context(), client.InstructionRequest{}, client.InstructionQuery{DryRun: true}); err != nil {
		t.Error(err)
	}

	if got := a.operations["POST /grid/instructions"]; got != "dry_run=true" {
		t.Errorf("asked with %q", got)
	}
}

// An organisation gives a part of its fleet an instruction without
// meaning it, and reads what that would do.
func ExampleClient_Instruct() {
	flexd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/auth/token-form" {
			fmt.Fprint(w, `{"access_token": "token"}`)
			return
		}

		var in client.InstructionRequest
		err := json.NewDecoder(r.Body).Decode(&in)
		fmt.Println(r.URL.RequestURI(), *in.ChangeKW, err)
		fmt.Fprint(w, `{}`)
	}))
	defer flexd.Close()

	from := time.Date(2026, time.March, 5, 17, 0, 0, 0, time.UTC)
	_, err := client.New(flexd.URL, "acme", "secret").Instruct(context.Background(), client.InstructionRequest{
		ChangeKW: new(-500.0), StartTimestamp: client.At(from), EndTimestamp: client.At(from.Add(time.Hour)),
		Service: "dno", Reason: "evening peak",
	}, client.InstructionQuery{DryRun: true})

	fmt.Println("error:", err)
	// Output:
	// /grid/instructions?dry_run=true -500 <nil>
	// error: <nil>
}
