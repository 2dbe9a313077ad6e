package flex_test

import (
	"errors"
	"strings"
	"testing"

	"flexd/internal/flex"
)

func TestRecover(t *testing.T) {
	answer := func() (err error) {
		defer flex.Recover(&err)
		panic("planted")
	}
	if err := answer(); err == nil || !strings.Contains(err.Error(), "panic: planted") {
		t.Errorf("%v", err)
	}

	if err := func() (err error) { defer flex.Recover(&err); return errors.New("plain") }(); err == nil || err.Error() != "plain" {
		t.Errorf("%v", err)
	}
}
