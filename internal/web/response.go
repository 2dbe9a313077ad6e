package web

import (
	"io"
	"net/http"
	"os"
	"time"
)

// timed holds a handler's answers to the time that a client may take to read them, and gives
// the handler its own time once the request is read.
func timed(next http.Handler, write time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		answer := &response{
			ResponseWriter: w,
			control:        control,
			write:          write,
		}

		if r.Body == nil || r.Body == http.NoBody {
			control.SetReadDeadline(time.Time{})
		} else {
			r.Body = &requestBody{ReadCloser: r.Body, control: control}
		}

		defer answer.finish()
		next.ServeHTTP(answer, r)
	})
}

// requestBody takes the clock away when the body has come to its end. Left on, it would cancel
// the request of a handler that takes longer.
type requestBody struct {
	io.ReadCloser
	control *http.ResponseController
}

// Read reads on.
func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.control.SetReadDeadline(time.Time{})
	}

	return n, err
}

// response counts the time that the client lets the answer wait.
type response struct {
	http.ResponseWriter
	control *http.ResponseController
	// that the client has, beside the time for the answer's length
	write  time.Duration
	length int64
	waited time.Duration
}

// Write writes on, for as long as the client has left.
func (w *response) Write(p []byte) (int, error) {
	w.length += int64(len(p))
	left := w.left()
	if left <= 0 {
		return 0, unsent{os.ErrDeadlineExceeded}
	}

	start := time.Now()
	w.control.SetWriteDeadline(start.Add(left))
	n, err := w.ResponseWriter.Write(p)
	w.waited += time.Since(start)
	if err != nil {
		err = asUnsent(err)
	}

	return n, err
}

// left is how long the client may still take.
func (w *response) left() time.Duration {
	return w.write + time.Duration(w.length/writeRate)*time.Second - w.waited
}

// finish sets the time for what is still in buffers when the handler has returned.
func (w *response) finish() {
	w.control.SetWriteDeadline(time.Now().Add(max(0, w.left())))
}

// Unwrap lets http.ResponseController reach the writer beneath.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }
