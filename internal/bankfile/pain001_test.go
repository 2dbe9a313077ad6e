package bankfile_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"flexd/internal/bankfile"
)

// element is an element of a message as its schema has it: how often, and what is in it.
type element struct {
	name     string
	min, max int    // max 0 is any number
	kind     string // a complex or simple type below
}

// complexType is a sequence, or a choice of one.
type complexType struct {
	choice   bool
	elements []element
}

// The part of pain.001.001.09 that is used and its neighbours, in the order of the schema that
// ISO 20022 publishes. An element that is not here is not expected.
var complexTypes = map[string]complexType{
	"Document":                            seq("CstmrCdtTrfInitn CustomerCreditTransferInitiationV09"),
	"CustomerCreditTransferInitiationV09": seq("GrpHdr GroupHeader85", "PmtInf PaymentInstruction30 1-"),
	"GroupHeader85":                       seq("MsgId Max35Text", "CreDtTm ISODateTime", "NbOfTxs Max15NumericText", "CtrlSum DecimalNumber 0-1", "InitgPty PartyIdentification135"),
	"PaymentInstruction30": seq("PmtInfId Max35Text", "PmtMtd PaymentMethod3Code", "BtchBookg BatchBookingIndicator 0-1", "NbOfTxs Max15NumericText 0-1", "CtrlSum DecimalNumber 0-1",
		"PmtTpInf PaymentTypeInformation26 0-1", "ReqdExctnDt DateAndDateTime2Choice", "Dbtr PartyIdentification135", "DbtrAcct CashAccount38",
		"DbtrAgt BranchAndFinancialInstitutionIdentification6", "ChrgBr ChargeBearerType1Code 0-1", "CdtTrfTxInf CreditTransferTransaction34 1-"),
	"PaymentTypeInformation26":                     seq("InstrPrty Priority2Code 0-1", "SvcLvl ServiceLevel8Choice 0-", "LclInstrm LocalInstrument2Choice 0-1"),
	"DateAndDateTime2Choice":                       choice("Dt ISODate", "DtTm ISODateTime"),
	"PartyIdentification135":                       seq("Nm Max140Text 0-1"),
	"CashAccount38":                                seq("Id AccountIdentification4Choice", "Ccy ActiveOrHistoricCurrencyCode 0-1", "Nm Max70Text 0-1"),
	"AccountIdentification4Choice":                 choice("IBAN IBAN2007Identifier", "Othr GenericAccountIdentification1"),
	"GenericAccountIdentification1":                seq("Id Max34Text", "SchmeNm AccountSchemeName1Choice 0-1", "Issr Max35Text 0-1"),
	"BranchAndFinancialInstitutionIdentification6": seq("FinInstnId FinancialInstitutionIdentification18"),
	"FinancialInstitutionIdentification18":         seq("BICFI BICFIDec2014Identifier 0-1", "ClrSysMmbId ClearingSystemMemberIdentification2 0-1"),
	"ClearingSystemMemberIdentification2":          seq("ClrSysId ClearingSystemIdentification2Choice 0-1", "MmbId Max35Text"),
	"ClearingSystemIdentification2Choice":          choice("Cd ExternalClearingSystemIdentification1Code", "Prtry Max35Text"),
	"CreditTransferTransaction34": seq("PmtId PaymentIdentification6", "PmtTpInf PaymentTypeInformation26 0-1", "Amt AmountType4Choice", "ChrgBr ChargeBearerType1Code 0-1",
		"CdtrAgt BranchAndFinancialInstitutionIdentification6 0-1", "Cdtr PartyIdentification135 0-1", "CdtrAcct CashAccount38 0-1", "RmtInf RemittanceInformation16 0-1"),
	"PaymentIdentification6":  seq("InstrId Max35Text 0-1", "EndToEndId Max35Text"),
	"AmountType4Choice":       choice("InstdAmt ActiveOrHistoricCurrencyAndAmount"),
	"RemittanceInformation16": seq("Ustrd Max140Text 0-"),
}

// simpleTypes are patterns of the values, with what the schema's facets say.
var simpleTypes = map[string]string{
	"Max34Text": `.{1,34}`, "Max35Text": `.{1,35}`, "Max70Text": `.{1,70}`, "Max140Text": `.{1,140}`, "Max15NumericText": `[0-9]{1,15}`,
	"ISODateTime": `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`, "ISODate": `\d{4}-\d\d-\d\d`,
	"DecimalNumber": `\d{1,16}(\.\d{1,2})?`, "PaymentMethod3Code": `CHK|TRF|TRA`, "BatchBookingIndicator": `true|false`,
	"ChargeBearerType1Code": `DEBT|CRED|SHAR|SLEV`, "ActiveOrHistoricCurrencyCode": `[A-Z]{3,3}`,
	"IBAN2007Identifier": `[A-Z]{2,2}[0-9]{2,2}[a-zA-Z0-9]{1,30}`, "BICFIDec2014Identifier": `[A-Z0-9]{4,4}[A-Z]{2,2}[A-Z0-9]{2,2}([A-Z0-9]{3,3}){0,1}`,
	"ExternalClearingSystemIdentification1Code": `.{1,5}`, "ActiveOrHistoricCurrencyAndAmount": `\d{1,13}(\.\d{1,5})?`,
}

func seq(elements ...string) complexType    { return complexType{elements: readElements(elements)} }
func choice(elements ...string) complexType { return complexType{true, readElements(elements)} }

func readElements(texts []string) (out []element) {
	for _, text := range texts {
		parts := strings.Fields(text)
		e := element{parts[0], 1, 1, parts[1]}
		if len(parts) == 3 {
			from, to, _ := strings.Cut(parts[2], "-")
			e.min, _ = strconv.Atoi(from)
			e.max, _ = strconv.Atoi(to)
		}
		out = append(out, e)
	}
	return out
}

// node is an element of a document.
type node struct {
	name  xml.Name
	attrs []xml.Attr
	kids  []*node
	text  string
}

func readXML(text string) (*node, error) {
	d := xml.NewDecoder(strings.NewReader(text))
	path := []*node{{}}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return path[0], nil
		}
		if err != nil {
			return nil, err
		}

		top := path[len(path)-1]
		switch token := token.(type) {
		case xml.StartElement:
			n := &node{name: token.Name, attrs: token.Attr}
			top.kids = append(top.kids, n)
			path = append(path, n)
		case xml.EndElement:
			path = path[:len(path)-1]
		case xml.CharData:
			top.text += string(token)
		}
	}
}

const space = "urn:iso:std:iso:20022:tech:xsd:pain.001.001.09"

// validate compares a node with its type.
func validate(n *node, kind string) error {
	if n.name.Space != space {
		return fmt.Errorf("%s is of the namespace %q", n.name.Local, n.name.Space)
	}
	if form, ok := simpleTypes[kind]; ok {
		if kind == "ActiveOrHistoricCurrencyAndAmount" && (len(n.attrs) != 1 || n.attrs[0].Name.Local != "Ccy") {
			return fmt.Errorf("%s has the attributes %v", n.name.Local, n.attrs)
		}
		if len(n.kids) > 0 || !pattern(form).MatchString(n.text) {
			return fmt.Errorf("%s: %q is no %s", n.name.Local, n.text, kind)
		}
		return nil
	}

	c, ok := complexTypes[kind]
	if !ok {
		return fmt.Errorf("%s: the type %s is not expected", n.name.Local, kind)
	}
	if strings.TrimSpace(n.text) != "" {
		return fmt.Errorf("%s has text", n.name.Local)
	}

	rest, chosen := n.kids, 0
	for _, e := range c.elements {
		count := 0
		for len(rest) > 0 && rest[0].name.Local == e.name && (e.max == 0 || count < e.max) {
			if err := validate(rest[0], e.kind); err != nil {
				return fmt.Errorf("%s/%w", n.name.Local, err)
			}
			rest, count = rest[1:], count+1
		}

		if count < e.min && !c.choice {
			return fmt.Errorf("%s: %d of %s, at least %d", n.name.Local, count, e.name, e.min)
		}
		if count > 0 {
			chosen++
		}
	}

	if len(rest) > 0 {
		return fmt.Errorf("%s: %s is not expected here", n.name.Local, rest[0].name.Local)
	}
	if c.choice && chosen != 1 {
		return fmt.Errorf("%s: %d of its choices", n.name.Local, chosen)
	}
	return nil
}

// find returns the texts of all nodes at the path.
func (n *node) find(path ...string) (texts []string) {
	if len(path) == 0 {
		return []string{n.text}
	}
	for _, kid := range n.kids {
		if kid.name.Local == path[0] {
			texts = append(texts, kid.find(path[1:]...)...)
		}
	}
	return texts
}

// check001 validates a message by the schema's part, and adds it up.
func check001(text string) (*node, error) {
	root, err := readXML(text)
	if err != nil {
		return nil, err
	}
	if len(root.kids) != 1 || root.kids[0].name.Local != "Document" {
		return nil, fmt.Errorf("not one Document")
	}
	doc := root.kids[0]
	if err := validate(doc, "Document"); err != nil {
		return nil, err
	}

	transfers := []string{"CstmrCdtTrfInitn", "PmtInf", "CdtTrfTxInf"}
	amounts := doc.find(append(transfers, "Amt", "InstdAmt")...)
	sum := 0
	for _, a := range amounts {
		pence, err := strconv.Atoi(strings.Replace(a, ".", "", 1))
		if err != nil || len(a) < 4 || a[len(a)-3] != '.' {
			return nil, fmt.Errorf("amount %q", a)
		}
		sum += pence
	}

	for _, at := range []string{"GrpHdr", "PmtInf"} {
		count, total := doc.find("CstmrCdtTrfInitn", at, "NbOfTxs")[0], doc.find("CstmrCdtTrfInitn", at, "CtrlSum")[0]
		if count != strconv.Itoa(len(amounts)) || strings.Replace(total, ".", "", 1) != fmt.Sprintf("%03d", sum) {
			return nil, fmt.Errorf("%s says %s of %s, there are %d of %d", at, count, total, len(amounts), sum)
		}
	}

	seen := map[string]bool{}
	for _, id := range doc.find(append(transfers, "PmtId", "EndToEndId")...) {
		if seen[id] {
			return nil, fmt.Errorf("the end-to-end id %s is there twice", id)
		}
		seen[id] = true
	}

	// What every bank takes of the characters.
	set := regexp.MustCompile(`^[A-Za-z0-9/?:().,'+ -]*$`)
	for _, name := range append(doc.find(append(transfers, "Cdtr", "Nm")...), doc.find("CstmrCdtTrfInitn", "PmtInf", "Dbtr", "Nm")...) {
		if !set.MatchString(name) || strings.HasPrefix(name, "/") || strings.Contains(name, "//") || len(name) > 70 {
			return nil, fmt.Errorf("name %q", name)
		}
	}
	return doc, nil
}

func TestPain001(t *testing.T) {
	withIBAN := payer
	withIBAN.IBAN, withIBAN.BIC = "GB29NWBK60161331926819", "NWBKGB2L"

	for name, p := range map[string]bankfile.Payer{"sort code": payer, "IBAN": withIBAN, "foreign": {Name: "X", IBAN: "DE89370400440532013000", BIC: "COBADEFFXXX"}} {
		t.Run(name, func(t *testing.T) {
			f := aFile(300)
			f.Payer = p
			text := write(t, f, bankfile.Pain001)
			doc, err := check001(text)
			if err != nil {
				t.Fatalf("%v\n%.2000s", err, text)
			}

			batch := doc.kids[0].kids[1]
			for i, tx := range batch.kids[len(batch.kids)-300:] {
				want := f.Payments[i]
				got := strings.Join([]string{tx.find("CdtrAgt", "FinInstnId", "ClrSysMmbId", "ClrSysId", "Cd")[0], tx.find("CdtrAgt", "FinInstnId", "ClrSysMmbId", "MmbId")[0],
					tx.find("CdtrAcct", "Id", "Othr", "Id")[0], tx.find("PmtId", "EndToEndId")[0], strings.Replace(tx.find("Amt", "InstdAmt")[0], ".", "", 1)}, " ")
				if got != fmt.Sprintf("GBDSC %s %s %s %03d", want.SortCode.Reveal(), want.Number.Reveal(), want.Reference, want.Amount) {
					t.Errorf("payment %d: %s", i, got)
				}
			}
			if got := strings.Join(batch.find("DbtrAcct", "Id", "IBAN"), "") + strings.Join(batch.find("DbtrAcct", "Id", "Othr", "Id"), ""); got != p.IBAN+strings.Repeat(p.Number, btoi(p.IBAN == "")) {
				t.Errorf("paid from %s", got)
			}
		})
	}

	text := write(t, aFile(6), bankfile.Pain001)
	for _, want := range []string{"<Nm>Ann O&#39;Neill</Nm>", "<Nm>HYPERLINK( http:/evil )</Nm>", "<Nm>Lukasz Mueller-Oest</Nm>", "<Nm>J and K Smith</Nm>", "<Nm>1+1 x</Nm>",
		"<ReqdExctnDt>\n\t\t\t\t<Dt>2026-11-24</Dt>", "<MsgId>FLEXD-20261122-000007-1a2b3c4d</MsgId>", "<CreDtTm>2026-11-22T13:00:00Z</CreDtTm>"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// The validator finds what is planted: order, number, choice, length, pattern, sums.
func TestPain001_ValidatorFinds(t *testing.T) {
	good := write(t, aFile(3), bankfile.Pain001)
	replace := func(old, new string) func(string) string {
		return func(s string) string { return strings.Replace(s, old, new, 1) }
	}

	for name, change := range map[string]func(string) string{
		"another namespace":     replace("pain.001.001.09", "pain.001.001.03"),
		"two in another order":  replace("<PmtMtd>TRF</PmtMtd>\n\t\t\t<NbOfTxs>3</NbOfTxs>", "<NbOfTxs>3</NbOfTxs><PmtMtd>TRF</PmtMtd>"),
		"one missing":           replace("<PmtMtd>TRF</PmtMtd>", ""),
		"one twice":             replace("<PmtMtd>TRF</PmtMtd>", "<PmtMtd>TRF</PmtMtd><PmtMtd>TRF</PmtMtd>"),
		"one unknown":           replace("<PmtMtd>", "<X/><PmtMtd>"),
		"both of a choice":      replace("<Dt>2026-11-24</Dt>", "<Dt>2026-11-24</Dt><DtTm>2026-11-24T00:00:00</DtTm>"),
		"none of a choice":      replace("<Dt>2026-11-24</Dt>", ""),
		"an id too long":        replace("<MsgId>", "<MsgId>123456"),
		"an empty id":           replace("<MmbId>200000</MmbId>", "<MmbId></MmbId>"),
		"a code of none":        replace("TRF", "TFR"),
		"an amount with comma":  replace(".", ","),
		"another sum":           replace("<CtrlSum>", "<CtrlSum>1"),
		"another count":         replace("<NbOfTxs>3", "<NbOfTxs>4"),
		"an amount no currency": replace(` Ccy="GBP"`, ""),
		"an id twice":           replace("FLEXD0000000001-1</EndToEndId>", "FLEXD0000000000-1</EndToEndId>"),
		"a name out of the set": replace("Neill</Nm>", "Neill &amp; K</Nm>"),
		"text between":          replace("<PmtMtd>", "x<PmtMtd>"),
	} {
		bad := change(good)
		if bad == good {
			t.Fatalf("%s: nothing is planted", name)
		}
		if _, err := check001(bad); err == nil {
			t.Errorf("%s: not found", name)
		}
	}
}
