package bankfile_test

import (
	"strings"
	"testing"

	"flexd/internal/bankfile"
)

// debit is a booked debit of £7.50, with what a bank says of the entry.
func debit(reference, says string) string {
	return `<Ntry>` + says + `<Amt Ccy="GBP">7.50</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><AddtlNtryInf>` + reference + `</AddtlNtryInf></Ntry>`
}

// Each debit of a statement has a name that is the same when the statement comes again, and that of another debit is another.
func TestReadResults_Entries(t *testing.T) {
	const day = `<BookgDt><Dt>2026-11-24</Dt></BookgDt>`
	details := `<TxDtls><Refs><EndToEndId>` + refA + `</EndToEndId></Refs><Amt Ccy="GBP">7.50</Amt></TxDtls>`
	for name, tt := range map[string]struct{ entries, want string }{
		"the servicer's references": {debit(refA, "<NtryRef>1</NtryRef><AcctSvcrRef>S1</AcctSvcrRef>") + debit(refA, "<NtryRef>2</NtryRef><AcctSvcrRef>S2</AcctSvcrRef>"), "S1\nS2"},
		"an entry that comes again": {debit(refA, "<AcctSvcrRef>S1</AcctSvcrRef>") + debit(refA, "<AcctSvcrRef>S1\n</AcctSvcrRef>"), "S1\nS1"},
		"numbers of a statement":    {debit(refA, "<NtryRef>1</NtryRef><AcctSvcrRef>NONREF</AcctSvcrRef>"+day) + debit(refA, "<NtryRef>2</NtryRef>"+day), "2026-11-24\n2026-11-24, debit 2"},
		"days alone": {debit(refA, day) + debit(refB, day) + debit(refA, day) + debit(refA, `<BookgDt><DtTm>2026-11-25T01:00:00</DtTm></BookgDt>`),
			"2026-11-24\n2026-11-24\n2026-11-24, debit 2\n2026-11-25"},
		"nothing": {debit(refA, "") + debit(refA, ""), "an unknown day\nan unknown day, debit 2"},
		"twice in one entry": {`<Ntry><AcctSvcrRef>S1</AcctSvcrRef><Amt Ccy="GBP">15.00</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts>BOOK</Sts><NtryDtls>` +
			details + details + `</NtryDtls></Ntry>`, "S1\nS1, debit 2"},
		"a return": {`<Ntry><AcctSvcrRef>S1</AcctSvcrRef><Amt Ccy="GBP">7.50</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>BOOK</Sts><AddtlNtryInf>` + refA + `</AddtlNtryInf></Ntry>`, ""},
	} {
		got, err := bankfile.ReadResults([]byte(bankStatement(tt.entries)))
		var names []string
		for _, r := range got.Results {
			names = append(names, r.Entry)
		}
		if text := strings.Join(names, "\n"); err != nil || text != tt.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, text, tt.want)
		}
	}
}
