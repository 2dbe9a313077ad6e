package bankfile_test

import (
	"fmt"
	"strings"
	"testing"

	"flexd/internal/bankfile"
	"flexd/internal/flex"
)

const (
	refA = "FLEXD0123456789-1"
	refB = "FLEXDABCDEFGHJK-12"
)

// lines writes results as a line each.
func lines(r bankfile.Results) string {
	var out []string
	for _, x := range r.Results {
		amount := ""
		if x.Known {
			amount = x.Amount.String()
		}
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s%s %s %s %s", x.Reference, x.Message, x.Outcome, amount, x.Reason))+x.Problem)
	}
	return strings.Join(out, "\n")
}

func report(group, batches string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.002.001.10"><CstmrPmtStsRpt><GrpHdr><MsgId>X</MsgId><CreDtTm>2026-11-24T09:00:00</CreDtTm></GrpHdr>` +
		`<OrgnlGrpInfAndSts><OrgnlMsgId>FLEXD-M</OrgnlMsgId><OrgnlMsgNmId>pain.001.001.09</OrgnlMsgNmId>` + group + `</OrgnlGrpInfAndSts>` + batches + `</CstmrPmtStsRpt></Document>`
}

func bankStatement(entries ...string) string {
	return `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt><GrpHdr><MsgId>X</MsgId></GrpHdr><Stmt><Id>1</Id>` + strings.Join(entries, "") + `</Stmt></BkToCstmrStmt></Document>`
}

func TestReadResults(t *testing.T) {
	tx := func(ref, status, rest string) string {
		return `<TxInfAndSts><OrgnlInstrId>I</OrgnlInstrId><OrgnlEndToEndId>` + ref + `</OrgnlEndToEndId><TxSts>` + status + `</TxSts>` + rest + `</TxInfAndSts>`
	}

	const twice = "the bank refuses it as a duplicate: what became of the first, its answer to that says"
	for name, tt := range map[string]struct{ text, want string }{
		"pain.002, payments": {report("<GrpSts>PART</GrpSts>", "<OrgnlPmtInfAndSts><OrgnlPmtInfId>FLEXD-M</OrgnlPmtInfId>"+
			tx(refA, "RJCT", "<StsRsnInf><Rsn><Cd>AC01</Cd></Rsn><AddtlInf>Incorrect account</AddtlInf><AddtlInf>number</AddtlInf></StsRsnInf>"+
				`<OrgnlTxRef><Amt><InstdAmt Ccy="GBP">10.00</InstdAmt></Amt></OrgnlTxRef>`)+tx(refB, "ACSC", "")+tx("other", "ACSP", "")+"</OrgnlPmtInfAndSts>"),
			refA + "FLEXD-M failed £10.00 AC01 Incorrect account number\n" + refB + "FLEXD-M paid\notherFLEXD-M under way"},
		"pain.002, a batch and its payments": {report("<GrpSts>PART</GrpSts>", "<OrgnlPmtInfAndSts><OrgnlPmtInfId>FLEXD-N</OrgnlPmtInfId><PmtInfSts>RJCT</PmtInfSts><TxInfAndSts><OrgnlEndToEndId>"+refA+
			"</OrgnlEndToEndId></TxInfAndSts>"+tx(refB, "ACSC", "")+"</OrgnlPmtInfAndSts>"), refA + "FLEXD-M failed\n" + refB + "FLEXD-M paid"},
		"pain.002, a batch":   {report("", "<OrgnlPmtInfAndSts><OrgnlPmtInfId>FLEXD-N</OrgnlPmtInfId><PmtInfSts>RJCT</PmtInfSts></OrgnlPmtInfAndSts>"), "FLEXD-N failed"},
		"pain.002, the group": {report("<GrpSts>RJCT</GrpSts><StsRsnInf><Rsn><Prtry>DUPL</Prtry></Rsn></StsRsnInf>", ""), "FLEXD-M failed  DUPL" + twice},
		"pain.002, it has it": {report("", "<OrgnlPmtInfAndSts>"+tx(refA, "RJCT", "<StsRsnInf><Rsn><Cd>DU04</Cd></Rsn></StsRsnInf>")+"</OrgnlPmtInfAndSts>"), refA + "FLEXD-M failed  DU04" + twice},
		"pain.002, taken":     {report("<GrpSts>ACTC</GrpSts>", ""), "FLEXD-M under way"},
		"camt.053": {bankStatement(
			// A return before its payment, in the order of a bank.
			`<Ntry><Amt Ccy="GBP">7.50</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><NtryDtls><TxDtls><Refs><EndToEndId>`+refA+`</EndToEndId></Refs><RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf></TxDtls></NtryDtls></Ntry>`,
			`<Ntry><Amt Ccy="GBP">20.00</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts>BOOK</Sts><NtryDtls>`+
				`<TxDtls><Refs><EndToEndId>`+refA+`</EndToEndId></Refs><Amt Ccy="GBP">7.50</Amt></TxDtls>`+
				`<TxDtls><Refs><EndToEndId>NOTPROVIDED</EndToEndId></Refs><AmtDtls><TxAmt><Amt Ccy="GBP">12.5</Amt></TxAmt></AmtDtls><RmtInf><Ustrd>your `+refB+` thanks</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry>`,
			`<Ntry><Amt Ccy="GBP">99.00</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><AddtlNtryInf>RENT</AddtlNtryInf></Ntry>`,
			`<Ntry><Amt Ccy="GBP">7.50</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts><Cd>PDNG</Cd></Sts><NtryDtls><TxDtls><Refs><EndToEndId>`+refB+`</EndToEndId></Refs></TxDtls></NtryDtls></Ntry>`,
			`<Ntry><Amt Ccy="GBP">3.00</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><AddtlNtryInf>BGC `+refB+`</AddtlNtryInf></Ntry>`,
			`<Ntry><Amt Ccy="GBP">31.00</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><NtryDtls><Btch><PmtInfId>FLEXD-Z</PmtInfId></Btch></NtryDtls></Ntry>`,
			`<Ntry><Amt Ccy="GBP">31.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><RvslInd>true</RvslInd><Sts><Cd>BOOK</Cd></Sts><NtryDtls><Btch><PmtInfId>FLEXD-Z</PmtInfId></Btch></NtryDtls></Ntry>`,
			`<Ntry><Amt Ccy="EUR">3.00</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><AddtlNtryInf>`+refA+`</AddtlNtryInf></Ntry>`,
			`<Ntry><Amt Ccy="GBP">3.00</Amt><CdtDbtInd>DBIT</CdtDbtInd><RvslInd>true</RvslInd><Sts><Cd>BOOK</Cd></Sts><AddtlNtryInf>`+refA+`</AddtlNtryInf></Ntry>`),
			refA + " paid £7.50\n" + refB + " paid £12.50\n" + refB + " paid £3.00\nFLEXD-Z paid £31.00\n" + refA + " paidit is in EUR, and payments are in GBP\n" +
				refA + " paid £3.00the bank takes back a credit, so what it returned has left again\n" + refA + " returned £7.50 AC04\nFLEXD-Z returned £31.00"},
		"returned credits": {"\ufeffReturn_Code,reference,amount\nB," + strings.ToLower(refA) + ",£7.50\n5,what is it,7\n," + refB + ",1.234\n",
			refA + " returned £7.50 B account closed\nwhat is it returned £7.00 5 no account\n" + refB + " returnedthe amount \"1.234\" is none in pounds and pence"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := bankfile.ReadResults([]byte(tt.text))
			if err != nil || lines(got) != tt.want {
				t.Errorf("%v\ngot\n%s\nwant\n%s", err, lines(got), tt.want)
			}
		})
	}
	if got, _ := bankfile.ReadResults([]byte(bankStatement(`<Ntry><Amt Ccy="GBP">9</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts>BOOK</Sts></Ntry>`))); got.Others != 1 {
		t.Errorf("%d others", got.Others)
	}

	for name, text := range map[string]string{
		"nothing": "", "another document": "<Document><X/></Document>", "cut off": report("", "")[:200], "a CSV of something": "a,b\n1,2\n", "no amount": "reference,amount\n" + refA + ",\n",
	} {
		if _, err := bankfile.ReadResults([]byte(text)); flex.KindOf(err) != flex.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := bankfile.ReadResults(make([]byte, bankfile.ResultsMax+1)); flex.KindOf(err) != flex.TooLarge {
		t.Errorf("too large: %v", err)
	}
}

// Nothing that a bank, or somebody else, puts into a file makes the reader fail otherwise
// than with an error.
func FuzzReadResults(f *testing.F) {
	f.Add(report("<GrpSts>RJCT</GrpSts>", ""))
	f.Add(bankStatement(`<Ntry><Amt Ccy="GBP">3.00</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts>BOOK</Sts><AddtlNtryInf>` + refA + `</AddtlNtryInf></Ntry>`))
	f.Add("reference,amount\n" + refA + ",1.00\n")
	f.Fuzz(func(t *testing.T, text string) {
		results, err := bankfile.ReadResults([]byte(text))
		for _, r := range results.Results {
			if err == nil && (r.Amount < 0 || r.Reference == "" && r.Message == "" && r.Where != "the whole file" && !strings.HasPrefix(r.Where, "batch")) {
				t.Errorf("%+v", r)
			}
		}
	})
}
