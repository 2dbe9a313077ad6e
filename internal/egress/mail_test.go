package egress

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"strings"
	"testing"

	"flexd/internal/flex"
)

// relay is a mail relay without TLS that takes what it is given, one e-mail at a time, and
// refuses the recipient "nobody@example.com". It hangs up as soon as it has taken one for "hasty@example.com".
func relay(t *testing.T) (address string, mails <-chan string) {
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

	for hasty := false; ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}

		hasty = hasty || strings.Contains(line, "hasty@")
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
			if hasty {
				return
			}
		case word == "QUIT":
			say("221 bye")
			return
		default:
			say("250 fine")
		}
	}
}

func TestMailer_Send(t *testing.T) {
	address, mails := relay(t)
	m := Mailer{Address: address, From: "flexd <no-reply@example.com>", Plain: true}
	if err := m.Send(t.Context(), "ann@example.com", "Überweisung £5", "Grüße,\n.\nflexd\n"); err != nil {
		t.Fatal(err)
	}

	message, err := mail.ReadMessage(strings.NewReader(<-mails))
	if err != nil {
		t.Fatal(err)
	}

	subject, err := new(mime.WordDecoder).DecodeHeader(message.Header.Get("Subject"))
	if err != nil || subject != "Überweisung £5" || message.Header.Get("To") != "<ann@example.com>" {
		t.Errorf("headers %v %v", message.Header, err)
	}

	body, err := io.ReadAll(quotedprintable.NewReader(message.Body))
	if err != nil || strings.ReplaceAll(string(body), "\r", "") != "Grüße,\n..\nflexd\n" { // the relay's dot, not yet taken off
		t.Errorf("body %q %v", body, err)
	}

	for _, to := range []flex.Personal{"nobody@example.com", "ann@example.com\r\nBcc: eve@example.com", "", "ann"} {
		if err := m.Send(t.Context(), to, "x", "x"); err == nil || strings.Contains(err.Error(), "ann@") {
			t.Errorf("to %q: %v", to.Reveal(), err)
		}
	}

	if len(mails) != 0 {
		t.Error("a refused e-mail was sent")
	}

	m.Plain = false
	if err := m.Send(t.Context(), "ann@example.com", "x", "x"); err == nil || !strings.Contains(err.Error(), "no TLS") {
		t.Errorf("in the clear: %v", err)
	}
}

func TestMailer_SubjectCannotAddHeaders(t *testing.T) {
	address, mails := relay(t)
	m := Mailer{Address: address, From: "no-reply@example.com", Plain: true}
	if err := m.Send(t.Context(), "ann@example.com", "x\r\nBcc: eve@example.com", "x"); err != nil {
		t.Fatal(err)
	}

	if message, err := mail.ReadMessage(strings.NewReader(<-mails)); err != nil || message.Header.Get("Bcc") != "" {
		t.Errorf("%v %v", message.Header, err)
	}
}

// An e-mail that the relay has taken was sent, though the relay hangs up then: sent again, it would come twice.
func TestMailer_HangsUp(t *testing.T) {
	address, mails := relay(t)
	m := Mailer{Address: address, From: "no-reply@example.com", Plain: true}
	if err := m.Send(t.Context(), "hasty@example.com", "x", "x"); err != nil || len(mails) != 1 {
		t.Errorf("%d taken, %v", len(mails), err)
	}
}

// tlsRelay is the relay's end of a connection by TLS from the first byte on, and whom its certificate is by.
func tlsRelay(t *testing.T) (conn net.Conn, roots *x509.CertPool) {
	t.Helper()

	s := httptest.NewTLSServer(http.NotFoundHandler()) // for its certificate
	t.Cleanup(s.Close)
	roots = x509.NewCertPool()
	roots.AddCert(s.Certificate())

	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close() })
	go serveMail(tls.Server(theirs, &tls.Config{Certificates: s.TLS.Certificates}), make(chan string, 1))

	return ours, roots
}

// A relay that speaks TLS from the first byte on is greeted so, and needs no STARTTLS; what it shows is checked.
func TestMailer_TLSFromTheFirstByte(t *testing.T) {
	conn, roots := tlsRelay(t)
	m := Mailer{Address: "127.0.0.1:465", roots: roots}
	c, err := m.greetOver(tls.Client(conn, m.tlsOf("127.0.0.1")), "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	if _, encrypted := c.TLSConnectionState(); !encrypted {
		t.Error("the relay is spoken to in the clear")
	}
	c.Close()

	conn, _ = tlsRelay(t)
	m.roots = x509.NewCertPool()
	if _, err := m.greetOver(tls.Client(conn, m.tlsOf("127.0.0.1")), "127.0.0.1"); err == nil {
		t.Error("a certificate that nobody trusts is taken")
	}
}
