package csvfile

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"flexd/internal/flex"
)

// read returns a sheet as its rows' fields a and b, and the fault that ended it.
func read(r io.Reader) (string, error) {
	var out strings.Builder
	for row, err := range Read(r, "a", "b") {
		if err != nil {
			return out.String(), err
		}
		out.WriteString(row.Get("a") + "/" + row.Get("b") + "/" + row.Get("c") + ";")
	}
	return out.String(), nil
}

func TestRead(t *testing.T) {
	for _, c := range []struct{ text, want, fault string }{
		{"a,b\n1,2\n", "1/2/;", ""},
		{"b,x,A ,c\n 2 ,9,1,3", "1/2/3;", ""},
		{"\uFEFFa,b\r\n1,\"2, \"\"2\"\"\"\r\n", "1/2, \"2\"/;", ""},
		{"a,b", "", ""},
		{"", "", "empty"},
		{"\uFEFF", "", "empty"},
		{"a,c\n1,2", "", "no column b"},
		{"a;b\n1;2", "", "separated by semicolons: they should be separated by commas"},
		{"\uFEFFa\tb\n1\t2", "", "separated by tabs: they should be separated by commas"},
		{"a;b,c\n1,2", "", "no column a"},
		{"a,b\n1,2\n3\n", "1/2/;", "line 3"},
		{"a,b\n1,2\n\n\"3,4\n", "1/2/;", "line 4"},
		{"a,b\nN\u00fcrnberg,2\nN\xfcrnberg,3\n", "N\u00fcrnberg/2/;", "line 3: \"N\\xfcrnberg\" is not in UTF-8: save the file as CSV in UTF-8"},
		{"a,b\n1,2\x00\n", "", "line 2: \"2\\x00\" holds a character with the number 0"},
		{"\xff\xfea\x00,\x00b\x00\n\x00", "", "line 1: "},
		{"a,b,\xe9\n1,2,3\n", "", "line 1: \"\\xe9\" is not in UTF-8"},
		{"a,b\n1," + strings.Repeat("x", MaxLine-1), "1/" + strings.Repeat("x", MaxLine-1) + "/;", ""},
		{"a,b\n1," + strings.Repeat("x", MaxLine), "", "line 2: the row is longer"},
	} {
		got, err := read(strings.NewReader(c.text))
		if got != c.want || (err == nil) != (c.fault == "") {
			t.Errorf("%.40q: %.40q, %v", c.text, got, err)
		} else if err != nil && (flex.KindOf(err) != flex.Invalid || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%.40q: %v, want %q", c.text, err, c.fault)
		}
	}
}

func TestReadKnown(t *testing.T) {
	for head, fault := range map[string]string{
		"a,b": "", "c,B,A": "", "a,b,": "", "a,b,d": `no such column as "d"; the columns are a,b,c`, "a,c": "no column b", "a,b,cc,D": `"cc"`,
	} {
		var got error
		count := 0
		text := head + "\n1,2" + strings.Repeat(",3", strings.Count(head, ",")-1)
		for _, err := range ReadKnown(strings.NewReader(text), []string{"a", "b"}, []string{"c"}) {
			got = err
			count++
		}

		isRight := got == nil && fault == ""
		if got != nil && fault != "" {
			isRight = flex.KindOf(got) == flex.Invalid && strings.Contains(got.Error(), fault)
		}
		if !isRight || count != 1 {
			t.Errorf("%s: %d rows, %v", head, count, got)
		}
	}
}

func TestReadPassesOnOtherFailures(t *testing.T) {
	broken := errors.New("the disk is gone")
	for _, head := range []string{"", "a,b\n1,2\n"} {
		if _, err := read(io.MultiReader(strings.NewReader(head), iotest.ErrReader(broken))); !errors.Is(err, broken) {
			t.Errorf("after %q: %v", head, err)
		}
	}
}

func TestFault(t *testing.T) {
	for row := range Read(strings.NewReader("a,b\n\n1,\"x\ny\"\n2,z\n"), "a") {
		if row.Get("a") == "2" {
			if err := row.Fault("%s is wrong", "a"); err.Error() != "line 5: a is wrong" {
				t.Error(err)
			}
			return
		}
	}
	t.Error("the second row was not read")
}

// counted counts what is read of a reader.
type counted struct {
	io.Reader
	n int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

// A quotation mark that is never closed is named by the line before, and the file behind it is not read.
func TestRead_QuoteNeverClosed(t *testing.T) {
	file := &counted{Reader: strings.NewReader("a,b\n1,2\n3,\"4\n" + strings.Repeat("5,6\n", rowBytes))}
	got, err := read(file)
	if got != "1/2/;" || flex.KindOf(err) != flex.Invalid || !strings.Contains(err.Error(), "after line 2") {
		t.Errorf("%q, %v", got, err)
	}
	if file.n > 2*rowBytes {
		t.Errorf("%d bytes were read", file.n)
	}
}
