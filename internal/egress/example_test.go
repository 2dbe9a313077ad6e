package egress_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"flexd/internal/egress"
)

// A request leaves for the public internet alone, unless more is allowed.
func ExampleClient_Do() {
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "https://example.com/elsewhere") // is not followed
		w.WriteHeader(http.StatusFound)
		fmt.Fprint(w, "taken")
	}))

	defer endpoint.Close()
	request := egress.Request{Method: "POST", URL: endpoint.URL, Body: []byte(`{}`)}

	public := egress.New(egress.Options{})
	defer public.Close()
	_, err := public.Do(context.Background(), request)
	var refused *egress.Error
	fmt.Println("refused:", errors.As(err, &refused) && strings.Contains(refused.What, "127.0.0.1"))

	private := egress.New(egress.Options{Allow: egress.Private})
	defer private.Close()
	answer, err := private.Do(context.Background(), request)
	fmt.Println(answer.Status, string(answer.Body), err)
	// Output:
	// refused: true
	// 302 taken <nil>
}

// An answer is read up to a limit, and what is beyond it is an error.
func ExampleRequest() {
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "more than was asked for")
	}))

	defer endpoint.Close()

	c := egress.New(egress.Options{Allow: egress.Private})
	defer c.Close()
	answer, err := c.Do(context.Background(), egress.Request{Method: "GET", URL: endpoint.URL, AnswerMax: 4})
	fmt.Printf("%q, whole: %t\n", answer.Body, err == nil)
	// Output: "more", whole: false
}
