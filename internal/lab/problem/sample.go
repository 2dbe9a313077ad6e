package problem

import (
	"embed"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

//go:embed testdata/*.json
var sampleFiles embed.FS

// Sample is a problem whose least cost is known from another solver.
type Sample struct {
	Line    []byte
	Optimum float64 // pence
	Gross   float64 // turnover of a fleet, in pence; zero for others
}

// Samples returns the problems of every family that the tests use.
func Samples() ([]Sample, error) {
	files, err := sampleFiles.ReadDir("testdata")
	if err != nil {
		return nil, fmt.Errorf("find samples: %w", err)
	}

	var all []Sample
	for _, f := range files {
		raw, err := sampleFiles.ReadFile("testdata/" + f.Name())
		if err != nil {
			return nil, fmt.Errorf("read samples: %w", err)
		}

		var file struct {
			Instances []jsontext.Value `json:"instances"`
		}

		if err := json.Unmarshal(raw, &file); err != nil {
			return nil, fmt.Errorf("read samples of %s: %w", f.Name(), err)
		}

		for _, line := range file.Instances {
			var known struct {
				Optimum struct {
					Cost  float64 `json:"cost_p"`
					Gross float64 `json:"gross_p"`
				} `json:"optimum"`
			}

			if err := json.Unmarshal(line, &known); err != nil {
				return nil, fmt.Errorf("read a sample of %s: %w", f.Name(), err)
			}
			all = append(all, Sample{
				line,
				known.Optimum.Cost,
				known.Optimum.Gross,
			})
		}
	}

	return all, nil
}
