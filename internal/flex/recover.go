package flex

import (
	"fmt"
	"runtime/debug"
)

// Recover makes an error of a panic, with the stack. It is to be deferred by itself: in what answers a request or runs a
// job, and in each goroutine that works beside one. Nothing catches a panic of such a goroutine otherwise, and it ends the process.
func Recover(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}
}
