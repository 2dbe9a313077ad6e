package ocppserver

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"flexd/internal/flex"
)

// passwordMin is the shortest password that may be hashed for a chargers' file. The hash is
// fast and only safe for random passwords.
const passwordMin = 16

// HashPassword returns the line of a chargers' file for a charger and its password.
func HashPassword(id, password string) (string, error) {
	if !chargerID.MatchString(id) {
		return "", flex.Fail(
			flex.Invalid,
			"a charger's id is at most 48 letters, digits and any of *._:=@|-, not %q",
			id,
		)
	}
	if len(password) < passwordMin {
		return "", flex.Fail(
			flex.Invalid,
			"a charger's password has at least %d characters",
			passwordMin,
		)
	}

	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never fails

	return fmt.Sprintf("%s sha256:%x:%x", id, salt, passwordHash(salt, password)), nil
}

func passwordHash(salt []byte, password string) []byte {
	sum := sha256.Sum256(append(salt[:len(salt):len(salt)], password...))
	return sum[:]
}

// secret checks a charger's password against the stored plain text or hash.
type secret struct {
	salt []byte
	sum  []byte
	// a second valid password, while the password is being changed
	alternative *secret
}

func newSecret(password string) secret {
	return secret{sum: passwordHash(nil, password)}
}

// matches reports whether a password is correct. A charger may also send the bytes that the
// password's hex digits encode.
func (s secret) matches(password string) bool {
	digits := hex.EncodeToString([]byte(password))
	right := 0
	for _, p := range []string{password, digits, strings.ToUpper(digits)} {
		right |= subtle.ConstantTimeCompare(passwordHash(s.salt, p), s.sum)
	}

	return right == 1 || s.alternative != nil && s.alternative.matches(password)
}

// ChargersFile is a file with a line for each charger: its id, its password's hash and its
// options, as in floor=1.4. If a charger has several lines, each password is valid, and the
// options of the last one count. The file is read again when it changes.
type ChargersFile struct {
	path string
	log  *slog.Logger

	mu         sync.Mutex
	checkedAt  time.Time
	modifiedAt time.Time
	size       int64
	lines      map[string]chargerLine
	tags       map[string]tag
}

// chargerLine is a line of a chargers' file.
type chargerLine struct {
	secret secret
	chargerOptions
}

// fileEvery is how often the file is checked for changes.
const fileEvery = time.Second

// ReadChargers reads a chargers' file, so that errors in it are reported at the start.
func ReadChargers(path string, log *slog.Logger) (*ChargersFile, error) {
	f := &ChargersFile{path: path, log: log}
	err := f.read()
	return f, err
}

// secret returns a charger's password.
func (f *ChargersFile) secret(id string, now time.Time) (secret, bool) {
	l, ok := f.line(id, now)
	return l.secret, ok
}

// line returns a charger's line, after reading the file again if it changed. If the file
// cannot be read, the previous content counts.
func (f *ChargersFile) line(id string, now time.Time) (chargerLine, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()

	if now.Sub(f.checkedAt).Abs() >= fileEvery {
		f.checkedAt = now
		if err := f.read(); err != nil {
			f.log.Error(
				"the chargers' file is not as it should be; what was read before goes on",
				"err",
				err,
			)
		}
	}

	l, ok := f.lines[id]

	return l, ok
}

func (f *ChargersFile) read() error {
	info, err := os.Stat(f.path)
	if err != nil {
		return err
	}
	if f.lines != nil && info.ModTime().Equal(f.modifiedAt) &&
		info.Size() == f.size {
		return nil
	}

	file, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer file.Close()

	all := map[string]chargerLine{}
	tags := map[string]tag{}
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}

		if err := readLine(text, all, tags); err != nil {
			return fmt.Errorf("%s line %d: %w", f.path, number, err)
		}
	}

	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}

	f.modifiedAt = info.ModTime()
	f.size = info.Size()
	f.lines = all
	f.tags = tags

	return nil
}

// readLine reads a line of a charger or of a tag.
func readLine(
	text string,
	chargers map[string]chargerLine,
	tags map[string]tag,
) error {
	if fields := strings.Fields(text); fields[0] == "tag" {
		id, t, err := parseTag(fields)
		tags[id] = t
		return err
	}

	id, l, err := parseCharger(text)
	if before, duplicate := chargers[id]; duplicate {
		l.secret.alternative = &before.secret
	}
	chargers[id] = l

	return err
}

// parseCharger parses one line as HashPassword makes it, with the options after the hash.
func parseCharger(text string) (string, chargerLine, error) {
	fields := strings.Fields(text)
	if len(fields) < 2 || !chargerID.MatchString(fields[0]) {
		return "", chargerLine{}, fmt.Errorf("a line is a charger's id and its password's hash")
	}

	var (
		l   chargerLine
		err error
	)

	l.secret, err = parseHash(fields[1])
	if err != nil {
		return "", l, err
	}

	l.chargerOptions, err = parseOptions(fields[2:])

	return fields[0], l, err
}

// parseHash parses a password's hash.
func parseHash(text string) (secret, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 || parts[0] != "sha256" {
		return secret{}, fmt.Errorf(
			"a hash is sha256:SALT:SUM, as flexd charger-password prints it",
		)
	}

	salt, err := hex.DecodeString(parts[1])
	if err != nil {
		return secret{}, fmt.Errorf("the salt is not in hex digits")
	}

	sum, err := hex.DecodeString(parts[2])
	if err != nil || len(sum) != sha256.Size {
		return secret{}, fmt.Errorf(
			"the sum is not %d bytes in hex digits",
			sha256.Size,
		)
	}

	return secret{salt: salt, sum: sum}, nil
}
