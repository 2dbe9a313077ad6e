package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestProduct imports products, twice to the same effect, lists and withdraws one.
func TestProduct(t *testing.T) {
	s := store{Database: "sqlite:" + filepath.Join(t.TempDir(), "flexd.db"), Environment: "sandbox"}
	run, _ := commandRunner(t)
	run((&orgAdd{store: s, Name: "Acme", Username: "acme"}).Run, "acme")
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
}
