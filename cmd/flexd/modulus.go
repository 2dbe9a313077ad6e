package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"flexd/internal/app"
	"flexd/internal/flex"
)

// payoutsModulus is `flexd payouts modulus`.
type payoutsModulus struct {
	Import modulusImport `cmd:"" help:"Import your copy of the published tables. From then on the bank accounts that users link are checked against them."`
	Check  modulusCheck  `cmd:"" help:"Say whether a sort code and an account number belong together."`
}

type modulusImport struct {
	store
	form
	Files []string `arg:"" type:"existingfile" help:"The table of weights and that of substitutions. Example: flexd payouts modulus import valacdos.txt scsubtab.txt"`
}

// modulusFileMax is the largest table that is read, in bytes.
const modulusFileMax = 4 << 20

// Run imports.
func (m *modulusImport) Run(ctx context.Context, c console) error {
	var files []string
	for _, path := range m.Files {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if len(content) > modulusFileMax {
			return fmt.Errorf("%s has more than %d bytes", path, modulusFileMax)
		}

		files = append(files, string(content))
	}

	h, err := m.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	act := flex.AuditEntry{
		Who:     commandLine,
		Act:     "import modulus tables",
		Subject: strings.Join(m.Files, " "),
	}

	return h.Access.Act(ctx, act, func() error {
		state, err := h.Reward.ImportModulus(ctx, files)
		if err != nil {
			return err
		}

		return m.print(c, fields{"tables": fmt.Sprint(state)}, "%s\n", state)
	})
}

type modulusCheck struct {
	store
	SortCode string `arg:"" help:"The sort code, six digits, such as 08-99-99."`
	Number   string `arg:"" help:"The account number, eight digits."`
	JSON     bool   `help:"Print as JSON." name:"json"`
}

// Run checks.
func (m *modulusCheck) Run(ctx context.Context, c console) error {
	h, err := m.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	v, err := h.Reward.CheckModulus(ctx, m.SortCode, m.Number)
	if err != nil {
		return err
	}

	if m.JSON {
		return c.json(map[string]string{"verdict": string(v)})
	}

	fmt.Fprintln(c.out, v)

	return nil
}

// checkModulus reports whether bank accounts are checked.
func checkModulus(ctx context.Context, h *app.App) ([]symptom, error) {
	state, err := h.Reward.ModulusState(ctx)
	if err != nil {
		return nil, err
	}

	// It is a choice to have no tables.
	s := symptom{
		Part:   "modulus check of bank accounts",
		Well:   true,
		Detail: state.String(),
	}

	if state.Weights.IsZero() {
		s.Do = "flexd payouts modulus import valacdos.txt scsubtab.txt, with the files that Vocalink publishes, if you pay users"
	}

	return []symptom{s}, nil
}
