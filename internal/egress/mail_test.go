package egress

import (
	"bufio"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"strings"
	"testing"

	"flexd/internal/flex"
)

// relay is a mail relay without TLS that takes what it is given, one letter at a time, and
// refuses the recipient "nobody@example.com".
func relay(t *testing.T) (address string, letters <-chan string) {
	t.Helper()

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { l.Close() })
	taken := make(chan string, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serveMail(c, taken)
		}
	}()

	return l.Addr().String(), taken
}

func serveMail(c net.Conn, taken chan<- string) {
	defer c.Close()
	in := bufio.NewReader(c)
	say := func(s string) { fmt.Fprintf(c, "%s\r\n", s) }
	say("220 relay")

	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}

		switch word := strings.ToUpper(strings.Fields(line + " x")[0]); {
		case word == "RCPT" && strings.Contains(line, "nobody@"):
			say("550 no such user")
		case word == "DATA":
			say("354 go on")
			var b strings.Builder

			for line, _ = in.ReadString('\n'); line != ".\r\n"; line, _ = in.ReadString('\n') {
				b.WriteString(line)
			}

			taken <- b.String()
			say("250 taken")
		case word == "QUIT":
			say("221 bye")
			return
		default:
			say("250 fine")
		}
	}
}

func TestMailer_Send(t *testing.T) {
	address, letters := relay(t)
	m := Mailer{Address: address, From: "flexd <no-reply@example.com>", Plain: true}
	if err := m.Send(t.Context(), "ann@example.com", "Überweisung £5", "Grüße,\n.\nflexd\n"); err != nil {
		t.Fatal(err)
	}

	letter, err := mail.ReadMessage(strings.NewReader(<-letters))
	if err != nil {
		t.Fatal(err)
	}

	subject, err := new(mime.WordDecoder).DecodeHeader(letter.Header.Get("Subject"))
	if err != nil || subject != "Überweisung £5" || letter.Header.Get("To") != "<ann@example.com>" {
		t.Errorf("headers %v %v", letter.Header, err)
	}

	body, err := io.ReadAll(quotedprintable.NewReader(letter.Body))
	if err != nil || strings.ReplaceAll(string(body), "\r", "") != "Grüße,\n..\nflexd\n" { // the relay's dot, not yet taken off
		t.Errorf("body %q %v", body, err)
	}

	for _, to := range []flex.Personal{"nobody@example.com", "ann@example.com\r\nBcc: eve@example.com", "", "ann"} {
		if err := m.Send(t.Context(), to, "x", "x"); err == nil || strings.Contains(err.Error(), "ann@") {
			t.Errorf("to %q: %v", to.Reveal(), err)
		}
	}

	if len(letters) != 0 {
		t.Error("a refused letter was sent")
	}

	m.Plain = false
	if err := m.Send(t.Context(), "ann@example.com", "x", "x"); err == nil || !strings.Contains(err.Error(), "no TLS") {
		t.Errorf("in the clear: %v", err)
	}
}

func TestMailer_SubjectCannotAddHeaders(t *testing.T) {
	address, letters := relay(t)
	m := Mailer{Address: address, From: "no-reply@example.com", Plain: true}
	if err := m.Send(t.Context(), "ann@example.com", "x\r\nBcc: eve@example.com", "x"); err != nil {
		t.Fatal(err)
	}

	if letter, err := mail.ReadMessage(strings.NewReader(<-letters)); err != nil || letter.Header.Get("Bcc") != "" {
		t.Errorf("%v %v", letter.Header, err)
	}
}
