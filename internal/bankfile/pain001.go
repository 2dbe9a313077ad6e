package bankfile

import (
	"encoding/xml"
	"io"
	"strconv"
	"time"
)

// isoName is the longest name that every bank takes, in characters.
const isoName = 70

// pain001Space is the namespace of the message that is written.
const pain001Space = "urn:iso:std:iso:20022:tech:xsd:pain.001.001.09"

// The elements of the message, in its order.
type (
	pain001 struct {
		XMLName xml.Name      `xml:"Document"`
		Space   string        `xml:"xmlns,attr"`
		Header  pain001Header `xml:"CstmrCdtTrfInitn>GrpHdr"`
		Batch   pain001Batch  `xml:"CstmrCdtTrfInitn>PmtInf"`
	}

	pain001Header struct {
		Message string `xml:"MsgId"`
		MadeAt  string `xml:"CreDtTm"`
		Count   string `xml:"NbOfTxs"`
		Sum     string `xml:"CtrlSum"`
		Payer   string `xml:"InitgPty>Nm"`
	}

	pain001Batch struct {
		ID       string            `xml:"PmtInfId"`
		Method   string            `xml:"PmtMtd"`
		Count    string            `xml:"NbOfTxs"`
		Sum      string            `xml:"CtrlSum"`
		Day      string            `xml:"ReqdExctnDt>Dt"`
		Payer    string            `xml:"Dbtr>Nm"`
		Account  pain001Account    `xml:"DbtrAcct"`
		Bank     pain001Bank       `xml:"DbtrAgt>FinInstnId"`
		Payments []pain001Transfer `xml:"CdtTrfTxInf"`
	}

	pain001Account struct {
		IBAN   string        `xml:"Id>IBAN,omitempty"`
		Number *pain001Other `xml:"Id>Othr"`
		Money  string        `xml:"Ccy,omitempty"`
	}

	pain001Other struct {
		ID string `xml:"Id"`
	}

	pain001Bank struct {
		BIC    string           `xml:"BICFI,omitempty"`
		Member *pain001Clearing `xml:"ClrSysMmbId"`
	}

	pain001Clearing struct {
		System   string `xml:"ClrSysId>Cd"`
		SortCode string `xml:"MmbId"`
	}

	pain001Transfer struct {
		Instruction string         `xml:"PmtId>InstrId"`
		EndToEnd    string         `xml:"PmtId>EndToEndId"`
		Amount      pain001Amount  `xml:"Amt>InstdAmt"`
		Bank        pain001Bank    `xml:"CdtrAgt>FinInstnId"`
		Name        string         `xml:"Cdtr>Nm"`
		Account     pain001Account `xml:"CdtrAcct"`
		Remittance  string         `xml:"RmtInf>Ustrd"`
	}

	pain001Amount struct {
		Money string `xml:"Ccy,attr"`
		Value string `xml:",chardata"`
	}
)

// sortCodes names the British sort codes among the world's clearing systems.
const sortCodes = "GBDSC"

func bankAt(sortCode, bic string) pain001Bank {
	bank := pain001Bank{BIC: bic}
	if sortCode != "" {
		bank.Member = &pain001Clearing{System: sortCodes, SortCode: sortCode}
	}

	return bank
}

// writePain001 writes a customer credit transfer initiation: one batch of one day.
func (f File) writePain001(out io.Writer) error {
	count, sum := strconv.Itoa(len(f.Payments)), pounds(f.Total())
	header := pain001Header{
		f.Message,
		f.MadeAt.UTC().Format(time.RFC3339),
		count,
		sum,
		isoAlphabet.text(f.Payer.Name, isoName),
	}

	batch := pain001Batch{
		ID:      f.Message,
		Method:  "TRF",
		Count:   count,
		Sum:     sum,
		Day:     f.Day.String(),
		Payer:   header.Payer,
		Account: f.Payer.pain001Account(),
		Bank:    bankAt(f.Payer.sortCode(), f.Payer.BIC),
	}

	for _, p := range f.Payments {
		batch.Payments = append(batch.Payments, p.pain001Transfer())
	}

	if _, err := io.WriteString(out, xml.Header); err != nil {
		return err
	}

	enc := xml.NewEncoder(out)
	enc.Indent("", "\t")

	if err := enc.Encode(pain001{
		Space:  pain001Space,
		Header: header,
		Batch:  batch,
	}); err != nil {
		return err
	}

	_, err := io.WriteString(out, "\n")

	return err
}

func (p Payer) pain001Account() pain001Account {
	account := pain001Account{IBAN: p.IBAN, Money: "GBP"}
	if p.IBAN == "" {
		account.Number = &pain001Other{p.Number}
	}

	return account
}

func (p Payment) pain001Transfer() pain001Transfer {
	return pain001Transfer{
		Instruction: p.Reference,
		EndToEnd:    p.Reference,
		Amount:      pain001Amount{"GBP", pounds(p.Amount)},
		Bank:        bankAt(p.SortCode.Reveal(), ""),
		Name:        isoAlphabet.text(p.Name.Reveal(), isoName),
		Account:     pain001Account{Number: &pain001Other{p.Number.Reveal()}},
		Remittance:  p.Reference,
	}
}
