package control

import (
	"errors"
	"fmt"

	"flexd/internal/flex"
)

// notPlanned is an asset that could not be planned again, and why.
type notPlanned struct {
	asset flex.AssetID
	err   error
}

// failedAssets are the assets that a run could not plan again.
type failedAssets struct {
	assets map[flex.AssetID]bool
	errs   []error
}

func (v *failedAssets) add(failed []notPlanned) {
	for _, f := range failed {
		v.assets[f.asset] = true
		v.errs = append(v.errs, fmt.Errorf("asset %v: %w", f.asset, f.err))
	}
}

func (v *failedAssets) err() error { return errors.Join(v.errs...) }
