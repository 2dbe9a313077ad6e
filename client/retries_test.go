package client

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestRetries_UnderWay: a try that conflicts with an earlier one of the same request is made again, and a conflict of the first try is
// the answer.
func TestRetries_UnderWay(t *testing.T) {
	var answers, tries []int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Idempotency-Key") == "" {
			_, _ = w.Write([]byte(`{"access_token":"x","token_type":"bearer","expires_in":3600}`))
			return
		}
		tries = append(tries, answers[0])
		w.WriteHeader(answers[0])
		answers = answers[1:]
	}))
	t.Cleanup(server.Close)

	c := New(server.URL, "acme", "x")
	for _, x := range []struct {
		answers []int
		status  int
		tries   int
	}{
		{[]int{503, 409, 409, 204}, 0, 4},
		{[]int{409, 204}, 409, 1},
		{[]int{401, 409, 204}, 409, 2},
		{[]int{503, 409, 409, 409, 409, 409}, 409, 5},
	} {
		answers, tries = x.answers, nil
		err := c.PlugOut(t.Context(), AssetID{1})
		if StatusOf(err) != x.status || err == nil != (x.status == 0) || len(tries) != x.tries {
			t.Errorf("%v: %v after %v", x.answers, err, tries)
		}
	}
}

// TestRetries_NewerToken: that a token was refused does not end the one that another request has got since.
func TestRetries_NewerToken(t *testing.T) {
	c := New("http://127.0.0.1:1", "acme", "x")
	refused := httptest.NewRequest(http.MethodGet, "/", nil)
	refused.Header.Set("Authorization", "Bearer old")

	for token, want := range map[string]string{"old": "", "new": "new"} {
		c.token = token
		c.forgetToken(refused)
		if c.token != want {
			t.Errorf("of %q there is %q", token, c.token)
		}
	}
}
