package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/product"
)

// TestProduct imports products, twice to the same effect, lists and withdraws one.
func TestProduct(t *testing.T) {
	s := store{Database: "sqlite:" + filepath.Join(t.TempDir(), "flexd.db"), Environment: "sandbox"}
	run, out := commandRunner(t)
	run((&orgAdd{cellFlags: cellFlags{store: s}, Name: "Acme", Username: "acme"}).Run, "acme")
	of := ofOrg{store: s, Org: "Acme"}
	file := filepath.Join(t.TempDir(), "products.csv")
	write := func(rows string) string {
		data := "reference,service,start_timestamp,end_timestamp,volume_kw,price_gbp_per_mwh,participation\n" + rows
		if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}

	soon := time.Now().AddDate(0, 0, 7).Format(time.DateOnly)
	good := "DFS-1,dfs," + soon + "T18:00:00Z," + soon + "T19:00:00Z,500,250,opt_out\n"
	for rows, want := range map[string]string{
		"": "1 to 1000 products", good + good: "given twice", strings.Replace(good, ",500,", ",0,", 1): "volume",
		strings.Replace(good, "T19", "T17", 1): "ends after", strings.Replace(good, "opt_out", "maybe", 1): "participation", strings.Replace(good, "dfs", "gas", 1): "service",
		good + strings.Replace(strings.Replace(good, "DFS-1", "DFS-2", 1), ",250,", ",0,", 1): `line 3: product "DFS-2": the utilisation price`,
	} {
		run((&productImport{ofOrg: of, File: write(rows)}).Run, want)
	}

	run((&productImport{ofOrg: of, File: write(good), DryRun: true}).Run, "new")
	run((&productList{ofOrg: of, Limit: 5}).Run, "0 of 0 products")
	run((&productImport{ofOrg: of, File: write(good)}).Run, "new")
	run((&productImport{ofOrg: of, File: write(good)}).Run, "unchanged")
	run((&productImport{ofOrg: of, File: write(strings.Replace(good, "500", "400", 1))}).Run, "changed")
	run((&productList{ofOrg: of, Limit: 5, State: "open"}).Run, "-400")
	run((&productList{ofOrg: of, Limit: 5, JSON: true}).Run, `"reference": "DFS-1"`)

	var page struct {
		Products []struct {
			ID string `json:"id"`
		} `json:"products"`
	}
	if err := json.Unmarshal(out.Bytes(), &page); err != nil || len(page.Products) != 1 {
		t.Fatalf("%s: %v", out, err)
	}

	withdraw := &productWithdraw{productNamed{ofOrg: of, ID: page.Products[0].ID}}
	run(withdraw.Run, "product DFS-1 is withdrawn: it is not sent")
	run(withdraw.Run, "product DFS-1 was withdrawn at ")
	for _, kw := range []string{"400", "300"} { // its terms, and others
		run((&productImport{ofOrg: of, File: write(strings.Replace(good, "500", kw, 1))}).Run, "was withdrawn at ")
	}
}

// A misspelt column of products is refused, because the product would otherwise be settled by
// another baseline.
func TestProduct_Columns(t *testing.T) {
	head := "reference,service,start_timestamp,end_timestamp,volume_kw,price_gbp_per_mwh"
	row := "\nDFS-1,dfs,2026-01-15T18:00:00Z,2026-01-15T19:00:00Z,500,250"
	for more, want := range map[string]string{
		"": "", ",Baseline": "", ",": "", ",basline": `"basline"`, ",baseline,note": `"note"`,
	} {
		value := strings.Repeat(",mean", strings.Count(more, ","))
		_, err := product.Read(strings.NewReader(head+more+row+value), "Ann")
		if (want == "") != (err == nil) {
			t.Errorf("with %q: %v", more, err)
		}
		if err != nil && !(strings.Contains(err.Error(), want) && strings.Contains(err.Error(), "baseline,participation")) {
			t.Errorf("with %q: %v", more, err)
		}
	}
}

// Each wrong row of a file is named with its line, up to twenty of them; the right rows
// between them are not.
func TestProduct_WrongRows(t *testing.T) {
	head := "reference,service,start_timestamp,end_timestamp,volume_kw,price_gbp_per_mwh\n"
	right := "DFS-1,dfs,2026-01-15T18:00:00Z,2026-01-15T19:00:00Z,500,250\n"
	badTime := "DFS-2,dfs,yesterday,2026-01-15T19:00:00Z,500,250\n"
	badVolume := "DFS-3,dfs,2026-01-15T18:00:00Z,2026-01-15T19:00:00Z,-1,250\n"

	_, err := product.Read(strings.NewReader(head+right+badTime+right+badVolume), "Ann")
	if flex.KindOf(err) != flex.Invalid || !strings.Contains(err.Error(), "line 3: ") || !strings.Contains(err.Error(), "line 5: ") {
		t.Errorf("two wrong rows: %v", err)
	}
	if strings.Contains(err.Error(), "line 2") || strings.Contains(err.Error(), "line 4") {
		t.Errorf("rows that are right are named: %v", err)
	}

	_, err = product.Read(strings.NewReader(head+strings.Repeat(badTime, 33)), "Ann")
	if n := strings.Count(err.Error(), "line "); n != 20 || !strings.HasSuffix(err.Error(), "; and 13 more rows") {
		t.Errorf("33 wrong rows, %d named: %v", n, err)
	}
}

// A service that does not exist is refused, and so is such a state.
func TestProduct_Service(t *testing.T) {
	for service, isRight := range map[string]bool{"banana": false, "dfs": true, "other": true} {
		_, err := parserOf(t, &commands{}).Parse([]string{"product", "list", "--org", "Acme", "--service", service})
		if isRight != (err == nil) {
			t.Errorf("%s: %v", service, err)
		}
	}
}
