package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// groups are the parts of the help's list of commands, in order. Commands without a part are
// in the last one.
var groups = []kong.Group{
	{Key: "start", Title: "Get started and run:"},
	{Key: "people", Title: "Organisations and people:"},
	{Key: "fleet", Title: "Fleet and pushes:"},
	{Key: "watch", Title: "Monitor and alert:"},
	{Key: "money", Title: "Readings and money:"},
	{Key: "import", Title: "Prices, meters and models:"},
	{Key: "store", Title: "Database and keys:"},
	{Key: "chargers", Title: "Chargers and homes:"},
	{Key: "build", Title: "Develop a client:"},
	{Key: "measure", Title: "Plan and measure without a service:"},
}

// examples is a line for each command, as somebody types it.
const examples = `
demo --speed 30
serve --environment sandbox --allow-private-endpoints
completion bash
cell list --cell north=sqlite:north.db
cell move Acme --to north --cell north=sqlite:north.db
org add Acme --username acme
org list
org networks Acme 192.0.2.0/24 2001:db8::/48
org set Acme user_share=0.5 --from 2027-04-01
org terms Acme --json
credential list Acme
credential add Acme acme-readings --role metrics_write
credential roll acme-readings
credential limit acme-readings --from 10.1.0.0/16
credential bind acme-readings 0a1c9d4e5f60718293a4b5c6d7e8f9000a1c9d4e5f60718293a4b5c6d7e8f900
credential revoke acme-readings
operator add ada --role viewer
operator password ada
operator role ada admin
operator list
operator sessions
operator logout ada
operator orgs bob "Acme Energy"
operator tie ada 248289761001 --issuer https://login.example.com
operator reset-two-step ada
operator remove ada
audit list
audit export
audit checkpoint
audit verify
halt 'firmware 2.1 ignores limits'
resume
asset replan CH-1 CH-2 --preview
asset resend CH-1
asset release CH-1
asset charge-now CH-1 --for 2h
asset end-charge-now CH-1
asset ready-by CH-1 --at 06:30
asset exclude CH-1
asset include CH-1
asset offboard CH-1 --confirm 'offboard 1'
alerts list
alerts acknowledge 01a1f96c-5192-7f77-aad8-57b48aa19966
alerts snooze 01a1f96c-5192-7f77-aad8-57b48aa19966 --for 8h --note 'the client repairs it tonight'
alerts rules
alerts rule refused --threshold 5 --for 10m
alerts route add night --kind webhook --to https://ops.example.com/alerts
alerts route list
alerts route remove night
alerts route test night
alerts route sent night
endpoint set Acme --url https://example.com/profiles/{external_id}
endpoint list Acme
dispatch send Acme battery-7 --kw=-3 --from 2027-01-20T17:00:00Z --for 30m
dispatch list Acme
caps set --org Acme --kw 2000
caps show --org Acme
caps clear --org Acme
fleet envelope --gsp-group _C --format csv
fleet ahead --half-hours 4 --format csv
fleet follow profile.csv
instruct preview --from 2027-01-20T17:00:00Z --to 2027-01-20T18:00:00Z --change-kw=-500
instruct send --from 2027-01-20T17:00:00Z --to 2027-01-20T18:00:00Z --change-kw=-500
instruct stop 01a1f96c-5192-7f77-aad8-57b48aa19966
instruct list
instruct report 01a1f96c-5192-7f77-aad8-57b48aa19966
instruct calls 01a1f96c-5192-7f77-aad8-57b48aa19966 --per-day 1 --per-month 3
offer stack --from 2027-01-20T17:00:00Z --to 2027-01-20T18:00:00Z
offer make --from 2027-01-20T17:00:00Z --to 2027-01-20T18:00:00Z
offer list
offer accept 01a1f96c-5192-7f77-aad8-57b48aa19966
product import products.csv --dry-run
product list --state open
product show 01a1f96c-5192-7f77-aad8-57b48aa19966
product answer 01a1f96c-5192-7f77-aad8-57b48aa19966 01a1f96c-5192-7f77-aad8-57b48aa19966 --out
product withdraw 01a1f96c-5192-7f77-aad8-57b48aa19966
mcp --org Acme
openadr client add Acme acme-dispatch --role BL
openadr client list Acme
openadr notices
limits import limits.csv
limits list
limits link feeder --fallback-kw 20 --after 15m
limits heartbeat feeder
limits heard feeder
limits unlink feeder
limits clear feeder
openadr list
openadr bind 01a1f96c-5192-7f77-aad8-57b48aa19966 --service dno --simple-kw=-100,-200
openadr upstream add utility --url https://vtn.example.com/openadr3/3.1.0 --client-id acme --secret s --program demand-response
openadr upstream list
openadr upstream remove 01a1f96c-5192-7f77-aad8-57b48aa19966
openadr unbind 01a1f96c-5192-7f77-aad8-57b48aa19966
openadr orders
rate show my-charger
rate pin my-charger 6.9
rate reset my-charger
verify
doctor
replay Acme 01a1f96c-5192-7f77-aad8-57b48aa19966
unready --day 2026-01-31
evidence --from 2026-01-01 --to 2026-01-31 --format html
find 1200012345678
export 01a1f96c-5192-7f77-aad8-57b48aa19966 --format html
erase 01a1f96c-5192-7f77-aad8-57b48aa19966
import acme.jsonl
migrate
backup flexd-monday.db
key new flexd.key
key persons --database sqlite:flexd.db --key-file flexd.db.key
key rotate flexd.key
key reseal
prices import prices.csv
prices fetch elexon-mid
prices roles Acme
meters import meters.csv
bsc register Acme --month 2026-10
bsc pairs Acme pairs.csv
bsc volumes Acme --month 2026-10 --out volumes.csv
bsc import Acme report.csv --run SF
bsc compare Acme --month 2026-10
mpan show 1099000010005
mpan move 1099000010005 --to Acme
models import models.csv
ocpp --username acme --password secret-of-acme
mqtt --broker mqtts://broker.example.com:8883 --username acme --password secret-of-acme --site 01a1f96c-5192-7f77-aad8-57b48aa19966
charger-call CP1 Reset '{"type":"Soft"}' --token T
charger-password CP1
supply show 01a1f96c-5192-7f77-aad8-57b48aa19966
supply set 01a1f96c-5192-7f77-aad8-57b48aa19966
supply power my-charger 7.4
readings held --org Acme
readings release 01a1f96c-5192-7f77-aad8-57b48aa19966
readings discard 01a1f96c-5192-7f77-aad8-57b48aa19966
statement 01a1f96c-5192-7f77-aad8-57b48aa19966 --tax-year 2026 --format csv --out statement.csv
payouts list
payouts approve 01a1f96c-5192-7f77-aad8-57b48aa19966
payouts reject 01a1f96c-5192-7f77-aad8-57b48aa19966
payouts retry 01a1f96c-5192-7f77-aad8-57b48aa19966
payouts check
payouts override 01a1f96c-5192-7f77-aad8-57b48aa19966 --reason 'married name, seen on the bill'
payouts hook https://names.example.com/check
payouts export friday.xml
payouts modulus import valacdos.txt
payouts modulus check 08-99-99 66374958
payouts files
payouts import answer.csv
books close Acme 2026-10
books months Acme
books balance Acme
books receive Acme --counterparty Supplier --month 2026-10 --amount 123.45 --reference INV-7
books market Acme
books owed Acme
books unclaimed Acme
books goodwill Acme 01a1f96c-5192-7f77-aad8-57b48aa19966 --amount 5.00 --reason 'a night without charge'
books bonus Acme 01a1f96c-5192-7f77-aad8-57b48aa19966 --kind signup --amount 5.00 --reason 'the first hundred'
books write-off Acme --amount 5.00 --reason 'never paid'
books reverse Acme 01a1f96c-5192-7f77-aad8-57b48aa19966 --reason 'the wrong counterparty'
books export Acme --from 2026-10-01 --to 2026-10-31
settle runs
settle again --from 2026-10-01 --to 2026-10-31
settle diff 01a1f96c-5192-7f77-aad8-57b48aa19966 01a1f96c-5192-7f77-aad8-57b48aa19967
settle baseline-error
listen --username me --password quick-start-secret --forward-to http://127.0.0.1:9000/forwarded
trigger plug_in my-charger --kwh 12 --username me --password quick-start-secret
certify --endpoint https://example.com/profiles/{external_id} --secret whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
plan --repeat 5
bench plan
bench wave
bench worker --database postgres://flexd@db/flexd --org 01a1f96c-5192-7f77-aad8-57b48aa19966
bench push
bench chargers --chargers 1000
bench growth --sites 1000,10000
bench sockets --address wss://127.0.0.1:8443 --authority authority.pem --chargers 1000
backtest --from 2026-10-01 --to 2026-10-31 --readings home.csv
simulate --homes 3 --days 2 --seed 7 --shrink
`

// exampleOf returns the line of a command, empty if there is none.
func exampleOf(command string) string {
	command, _, _ = strings.Cut(command, " (") // without its other names
	for line := range strings.Lines(examples) {
		line = strings.TrimSpace(line)
		if line == command || strings.HasPrefix(line, command+" ") {
			return line
		}
	}

	return ""
}

// helpWithExample prints kong's help, and how the command is typed.
func helpWithExample(w io.Writer) kong.HelpPrinter {
	return func(options kong.HelpOptions, ctx *kong.Context) error {
		if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
			return err
		}

		at := ctx.Selected()
		if at == nil || at.Type != kong.CommandNode {
			return nil
		}
		if line := exampleOf(at.Path()); line != "" && len(at.Children) == 0 {
			_, err := fmt.Fprintf(w, "\nExample:\n  flexd %s\n", line)
			return err
		}

		return nil
	}
}
