package docs

import "embed"

// Pages are the pages that concern those who call flexd or run it. The others are for those
// who change it.
//
//go:embed interface.md divergences.md delivery.md money.md payments.md market.md ocpp.md operating.md security.md decisions.md
var Pages embed.FS
