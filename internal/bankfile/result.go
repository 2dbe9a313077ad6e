package bankfile

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"flexd/internal/csvfile"
	"flexd/internal/flex"
)

// Outcome is what became of a payment.
type Outcome string

// The outcomes of payments.
const (
	Paid     Outcome = "paid"
	Failed   Outcome = "failed"   // never left the payer's account
	Returned Outcome = "returned" // came back after it was paid
	UnderWay Outcome = "under way"
)

// Result is what a bank says of a payment, or of all payments of a file.
type Result struct {
	Where     string // in the bank's file, for a person
	Reference string // of the payment; empty if the whole file is meant
	Message   string // of the file
	Outcome   Outcome
	// of the payment, or of the whole file; meaningful if it is known
	Amount  flex.Pence
	Known   bool   // the bank gave the amount
	Reason  string // the bank's code and words
	Problem string // why the result cannot be taken
	// of a debit in a statement: the bank's name of the entry, the same whenever it comes again
	Entry string
}

// Results is what a bank's file says.
type Results struct {
	Format  string
	Results []Result
	Others  int // entries of a statement that are no payments of flexd's
}

// ResultsMax is the longest file of results that is read, in bytes.
const ResultsMax = 32 << 20

// referenceForm is how flexd's references look, wherever a bank puts them.
var referenceForm = regexp.MustCompile(`\bFLEXD[0-9A-HJKMNP-TV-Z]{10}-[0-9]{1,2}\b`)

// ReadResults reads a bank's file: ISO 20022 pain.002 or camt.053 of any version, or a CSV of
// returned credits as Bacs reports them (ARUCS).
func ReadResults(content []byte) (Results, error) {
	if len(content) > ResultsMax {
		return Results{}, flex.Fail(
			flex.TooLarge,
			"a file of results has at most %d bytes",
			ResultsMax,
		)
	}

	text := bytes.TrimSpace(bytes.TrimPrefix(content, []byte("\uFEFF")))
	if len(text) == 0 || text[0] != '<' {
		return readReturns(text)
	}

	var doc struct {
		Report    *statusReport `xml:"CstmrPmtStsRpt"`
		Statement *statement    `xml:"BkToCstmrStmt"`
	}

	if err := xml.Unmarshal(text, &doc); err != nil {
		return Results{}, flex.Fail(flex.Invalid, "the file is no XML: %v", err)
	}

	if doc.Report != nil {
		return doc.Report.results(), nil
	}

	if doc.Statement != nil {
		return doc.Statement.results(), nil
	}

	return Results{}, flex.Fail(
		flex.Invalid,
		"the XML is neither a pain.002 (CstmrPmtStsRpt) nor a camt.053 (BkToCstmrStmt)",
	)
}

// reason is why a bank did not pay, or gave back.
type reason struct {
	Code  string   `xml:"Rsn>Cd"`
	Own   string   `xml:"Rsn>Prtry"`
	Words []string `xml:"AddtlInf"`
}

func (r reason) String() string {
	return strings.TrimSpace(strings.Join(
		append([]string{r.Code, r.Own}, r.Words...),
		" ",
	))
}

func join(reasons []reason) string {
	var all []string
	for _, r := range reasons {
		all = append(all, strings.Join(strings.Fields(r.String()), " "))
	}

	return strings.Join(all, "; ")
}

// money is an amount with its currency.
type money struct {
	Currency string `xml:"Ccy,attr"`
	Value    string `xml:",chardata"`
}

// amountForm is an amount in pounds.
var amountForm = regexp.MustCompile(`^([0-9]{1,12})(?:\.([0-9]{1,2})0*)?$`)

// pence reads the amount. It returns what is wrong with it, if anything is.
func (m money) pence() (flex.Pence, bool, string) {
	if m.Value == "" {
		return 0, false, ""
	}
	if m.Currency != "GBP" && m.Currency != "" {
		return 0, false, fmt.Sprintf(
			"it is in %s, and payments are in GBP",
			m.Currency,
		)
	}

	parts := amountForm.FindStringSubmatch(strings.TrimSpace(m.Value))
	if parts == nil {
		return 0, false, fmt.Sprintf(
			"the amount %q is none in pounds and pence",
			m.Value,
		)
	}

	n, err := strconv.ParseInt(parts[1]+(parts[2] + "00")[:2], 10, 64)

	return flex.Pence(n), err == nil, ""
}

// statusReport is a pain.002.
type statusReport struct {
	Message string   `xml:"OrgnlGrpInfAndSts>OrgnlMsgId"`
	Status  string   `xml:"OrgnlGrpInfAndSts>GrpSts"`
	Reasons []reason `xml:"OrgnlGrpInfAndSts>StsRsnInf"`
	Batches []struct {
		ID       string   `xml:"OrgnlPmtInfId"`
		Status   string   `xml:"PmtInfSts"`
		Reasons  []reason `xml:"StsRsnInf"`
		Payments []struct {
			Instruction string   `xml:"OrgnlInstrId"`
			EndToEnd    string   `xml:"OrgnlEndToEndId"`
			Status      string   `xml:"TxSts"`
			Reasons     []reason `xml:"StsRsnInf"`
			Amount      money    `xml:"OrgnlTxRef>Amt>InstdAmt"`
		} `xml:"TxInfAndSts"`
	} `xml:"OrgnlPmtInfAndSts"`
}

// outcomes are the statuses of ISO 20022 that end a payment. All others say that it continues.
var outcomes = map[string]Outcome{
	"RJCT": Failed,
	"CANC": Failed,
	"ACSC": Paid,
	"ACCC": Paid,
}

func outcomeOf(status string) Outcome {
	if o, ok := outcomes[status]; ok {
		return o
	}
	return UnderWay
}

// results lists what the report says: of single payments or, where it names none, of all.
func (s statusReport) results() Results {
	out := Results{Format: "pain.002"}
	single := 0

	for i, b := range s.Batches {
		for k, p := range b.Payments {
			single++
			// One without a status of its own has that of its batch, or of the file.
			status := cmp.Or(p.Status, b.Status, s.Status)
			r := Result{
				Where:     fmt.Sprintf("batch %d, payment %d", i+1, k+1),
				Reference: referenceOf(p.EndToEnd, p.Instruction),
				Message:   s.Message,
				Outcome:   outcomeOf(status),
				Reason:    join(p.Reasons),
			}

			r.Amount, r.Known, r.Problem = p.Amount.pence()
			out.Results = append(out.Results, r)
		}

		if len(b.Payments) == 0 && b.Status != "" {
			single++
			out.Results = append(out.Results, Result{
				Where:   fmt.Sprintf("batch %d", i+1),
				Message: b.ID,
				Outcome: outcomeOf(b.Status),
				Reason:  join(b.Reasons),
			})
		}
	}

	if single == 0 {
		out.Results = append(out.Results, Result{
			Where:   "the whole file",
			Message: s.Message,
			Outcome: outcomeOf(s.Status),
			Reason:  join(s.Reasons),
		})
	}

	s.refuseDuplicates(out.Results)

	return out
}

// duplicates are the reasons by which a bank refuses what it has already.
var duplicates = []string{"AM05", "DU01", "DU02", "DU03", "DU04", "DU05", "DUPL"}

// refuseDuplicates has no refusal count whose reason is that the bank has the same already: the
// first may have been paid.
func (s statusReport) refuseDuplicates(results []Result) {
	whole := s.Reasons
	for _, b := range s.Batches {
		whole = slices.Concat(whole, b.Reasons)
	}

	for i := range results {
		r := &results[i]
		words := strings.FieldsFunc(
			strings.ToUpper(r.Reason+" "+join(whole)),
			func(c rune) bool { return c == ' ' || c == ';' },
		)

		isDuplicate := slices.ContainsFunc(words, func(word string) bool {
			return slices.Contains(duplicates, word)
		})
		if isDuplicate && r.Outcome == Failed {
			r.Problem = "the bank refuses it as a duplicate: what became of the first, its answer to that says"
		}
	}
}

// referenceOf returns the first reference that is one of flexd's, or else the first there is.
func referenceOf(texts ...string) string {
	for _, text := range texts {
		found := referenceForm.FindString(strings.ToUpper(text))
		if found != "" {
			return found
		}
	}

	for _, text := range texts {
		if text != "" && text != "NOTPROVIDED" {
			return text
		}
	}

	return "(none)"
}

// statement is a camt.053.
type statement struct {
	Entries []entry `xml:"Stmt>Ntry"`
}

type entry struct {
	Servicer  string `xml:"AcctSvcrRef"`
	Amount    money  `xml:"Amt"`
	Direction string `xml:"CdtDbtInd"`
	Reversal  string `xml:"RvslInd"`
	Status    struct {
		Code string `xml:"Cd"`
		Text string `xml:",chardata"`
	} `xml:"Sts"`
	Booked struct {
		Day  string `xml:"Dt"`
		Time string `xml:"DtTm"`
	} `xml:"BookgDt"`
	Words   string `xml:"AddtlNtryInf"`
	Details []struct {
		Batch struct {
			Message string `xml:"MsgId"`
			ID      string `xml:"PmtInfId"`
		} `xml:"Btch"`
		Payments []entryPayment `xml:"TxDtls"`
	} `xml:"NtryDtls"`
}

type entryPayment struct {
	EndToEnd    string   `xml:"Refs>EndToEndId"`
	Instruction string   `xml:"Refs>InstrId"`
	Amount      money    `xml:"Amt"`
	Instructed  money    `xml:"AmtDtls>InstdAmt>Amt"`
	Single      money    `xml:"AmtDtls>TxAmt>Amt"`
	Return      *reason  `xml:"RtrInf"`
	Remittance  []string `xml:"RmtInf>Ustrd"`
	Words       string   `xml:"AddtlTxInf"`
}

// results lists the booked entries that are flexd's payments.
func (s statement) results() Results {
	out := Results{Format: "camt.053"}
	ofDays := map[string]int{}
	for i, e := range s.Entries {
		if e.Status.Code != "BOOK" &&
			strings.TrimSpace(e.Status.Text) != "BOOK" {
			continue // pending entries may never be booked
		}

		found := e.results(fmt.Sprintf("entry %d", i+1))
		e.nameDebits(found, ofDays)

		if len(found) == 0 {
			out.Others++
		}

		out.Results = append(out.Results, found...)
	}

	// In one statement a payment may come before or after its return: payments count first.
	var paid, back []Result

	for _, r := range out.Results {
		if r.Outcome == Paid {
			paid = append(paid, r)
		} else {
			back = append(back, r)
		}
	}

	out.Results = append(paid, back...)

	return out
}

// outcome is what an entry says of its payments, and why it cannot be taken. A credit is a return, also where it reverses a debit. A debit
// that is a reversal takes a credit back: a payment that had come back is gone again.
func (e entry) outcome() (Outcome, string) {
	if e.Direction != "DBIT" {
		return Returned, ""
	}

	if e.Reversal == "true" || e.Reversal == "1" {
		return Paid, "the bank takes back a credit, so what it returned has left again"
	}

	return Paid, ""
}

// results lists the payments of one entry.
func (e entry) results(where string) []Result {
	outcome, problem := e.outcome()
	payments := e.payments()

	var found []Result
	for i, p := range payments {
		reference := referenceOf(append(
			[]string{p.EndToEnd, p.Instruction, p.Words, e.Words},
			p.Remittance...,
		)...)
		if !referenceForm.MatchString(reference) {
			continue
		}

		r := Result{
			Where:     fmt.Sprintf("%s, payment %d", where, i+1),
			Reference: reference,
			Outcome:   outcome,
		}

		if p.Return != nil {
			r.Reason = p.Return.String()
		}

		r.Amount, r.Known, r.Problem = p.amount(
			e.Amount,
			len(payments) == 1,
		).pence()
		r.Problem = cmp.Or(problem, r.Problem)

		found = append(found, r)
	}

	// A batch that is booked as one sum names its file alone.
	message := e.message()
	if len(found) == 0 && message != "" {
		r := Result{
			Where:   where,
			Message: message,
			Outcome: outcome,
		}

		r.Amount, r.Known, r.Problem = e.Amount.pence()
		r.Problem = cmp.Or(problem, r.Problem)
		found = append(found, r)
	}

	return found
}

// payments lists the entry's payments; one that has no details is one payment.
func (e entry) payments() []entryPayment {
	var all []entryPayment
	for _, d := range e.Details {
		all = append(all, d.Payments...)
	}
	if len(all) == 0 {
		return []entryPayment{{}}
	}

	return all
}

// message returns the name of the file that a batch came of, if it is one of flexd's.
func (e entry) message() string {
	for _, d := range e.Details {
		for _, name := range []string{d.Batch.ID, d.Batch.Message} {
			if strings.HasPrefix(name, messagePrefix) {
				return name
			}
		}
	}

	return ""
}

// messagePrefix begins the names of flexd's files.
const messagePrefix = "FLEXD-"

// amount returns the payment's amount: its own, or the entry's if it is the only one.
func (p entryPayment) amount(whole money, only bool) money {
	for _, m := range []money{p.Amount, p.Single, p.Instructed} {
		if m.Value != "" {
			return m
		}
	}

	if only {
		return whole
	}

	return money{}
}

// arucs are the reasons by which Bacs returns credits.
var arucs = map[string]string{
	"0": "invalid details",
	"2": "beneficiary deceased",
	"3": "account transferred",
	"5": "no account",
	"B": "account closed",
	"C": "requested by remitter",
}

// readReturns reads a CSV of returned credits: reference, amount and, if it has it,
// return_code. Columns may come in any order.
func readReturns(text []byte) (Results, error) {
	out := Results{Format: "returned credits"}
	for row, err := range csvfile.Read(
		bytes.NewReader(text),
		"reference",
		"amount",
	) {
		if err != nil {
			return out, err
		}

		code := strings.ToUpper(row.Get("return_code"))
		r := Result{
			Where:     fmt.Sprintf("line %d", row.Line),
			Reference: referenceOf(row.Get("reference")),
			Outcome:   Returned,
			Reason:    strings.TrimSpace(code + " " + arucs[code]),
		}

		value := strings.TrimPrefix(row.Get("amount"), "£")
		r.Amount, r.Known, r.Problem = money{Value: value}.pence()

		if value == "" {
			return out, row.Fault("the amount is missing")
		}

		out.Results = append(out.Results, r)
	}

	return out, nil
}
