package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"time"

	"flexd/internal/flex"
)

// Mailer sends e-mails through the operator's mail relay.
type Mailer struct {
	Address  string // host:port; at port 465 the relay is spoken to by TLS from the first byte on
	From     string // as in "flexd <no-reply@example.com>"
	Username string // empty: the relay asks for none
	Password flex.Secret
	// Plain allows a relay that speaks no TLS. Without it nothing is sent in the clear.
	Plain bool

	roots *x509.CertPool // whom the relay's certificate is by; nil for those that the system trusts
}

// submissions is the port at which a relay speaks TLS from the first byte on (RFC 8314).
const submissions = "465"

// mailTime is the time that one e-mail may take.
const mailTime = 30 * time.Second

// Send sends an e-mail of plain text and returns when the relay has taken it.
func (m *Mailer) Send(
	ctx context.Context,
	to flex.Personal,
	subject, text string,
) error {
	from, err := mail.ParseAddress(m.From)
	if err != nil {
		return fmt.Errorf("the sender %q is no address: %w", m.From, err)
	}

	rcpt, err := mail.ParseAddress(to.Reveal())
	if err != nil {
		return errors.New("the recipient's address cannot be read")
	}

	message, err := compose(from, rcpt, subject, text, time.Now())
	if err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(ctx, mailTime)
	defer cancel()

	c, err := m.dial(ctx)
	if err != nil {
		return err
	}

	defer c.Close()

	err = errors.Join(c.Mail(from.Address), c.Rcpt(rcpt.Address))
	if err != nil {
		return fmt.Errorf("the relay refused the e-mail: %w", err)
	}

	w, err := c.Data()
	if err != nil {
		return fmt.Errorf("the relay refused the e-mail: %w", err)
	}
	if _, err := w.Write(message); err != nil {
		return fmt.Errorf("send the e-mail: %w", err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("the relay refused the e-mail: %w", err)
	}

	// It has taken the e-mail. One that hangs up now must not be sent it again.
	_ = c.Quit()

	return nil
}

// dial connects to the relay and greets it.
func (m *Mailer) dial(ctx context.Context) (*smtp.Client, error) {
	host, port, err := net.SplitHostPort(m.Address)
	if err != nil {
		return nil, fmt.Errorf(
			"the mail relay %q is no host:port: %w",
			m.Address,
			err,
		)
	}

	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", m.Address)
	if err != nil {
		return nil, fmt.Errorf("reach the mail relay: %w", err)
	}

	if deadline, set := ctx.Deadline(); set {
		conn.SetDeadline(deadline)
	}

	if port == submissions {
		conn = tls.Client(conn, m.tlsOf(host))
	}

	return m.greetOver(conn, host)
}

// tlsOf is how TLS is spoken with the relay.
func (m *Mailer) tlsOf(host string) *tls.Config {
	return &tls.Config{
		ServerName: host,
		MinVersion: tls.VersionTLS12,
		RootCAs:    m.roots,
	}
}

// greetOver greets the relay over a connection, by TLS unless plain text is allowed, and gives the password if there is one. If it fails, the
// connection is closed.
func (m *Mailer) greetOver(conn net.Conn, host string) (*smtp.Client, error) {
	c, err := smtp.NewClient(conn, host)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("greet the mail relay: %w", err)
	}

	if err := m.greet(c, host); err != nil {
		c.Close()
		return nil, err
	}

	return c, nil
}

func (m *Mailer) greet(c *smtp.Client, host string) error {
	if _, encrypted := c.TLSConnectionState(); !encrypted {
		if err := m.startTLS(c, host); err != nil {
			return err
		}
	}

	if m.Username == "" {
		return nil
	}

	err := c.Auth(smtp.PlainAuth("", m.Username, m.Password.Reveal(), host))
	if err != nil {
		return fmt.Errorf("log in at the mail relay: %w", err)
	}

	return nil
}

// startTLS begins TLS with a relay that was greeted in the clear.
func (m *Mailer) startTLS(c *smtp.Client, host string) error {
	if offered, _ := c.Extension("STARTTLS"); offered {
		if err := c.StartTLS(m.tlsOf(host)); err != nil {
			return fmt.Errorf("TLS with the mail relay: %w", err)
		}
		return nil
	}

	if !m.Plain {
		return fmt.Errorf(
			"the mail relay %s offers no TLS, and plain text is not allowed",
			m.Address,
		)
	}

	return nil
}

// compose writes the e-mail as it goes over the wire.
func compose(
	from, to *mail.Address,
	subject, text string,
	at time.Time,
) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(
		&b,
		"From: %s\r\nTo: %s\r\nSubject: %s\r\nDate: %s\r\n",
		from,
		to,
		mime.QEncoding.Encode("utf-8", subject),
		at.Format(time.RFC1123Z),
	)

	b.WriteString(
		"MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\nAuto-Submitted: auto-generated\r\n\r\n",
	)

	w := quotedprintable.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		return nil, err
	}

	return b.Bytes(), w.Close()
}
