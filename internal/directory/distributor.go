package directory

// Distributor runs the wires that a metering point hangs on.
type Distributor struct {
	MPID string // its four letters in the industry's registry
	Name string
	// GSPGroup is the region, "_A" to "_P", of one of the fourteen old regional boards. It is
	// empty for the independent ones, whose wires lie in any region: their number says
	// nothing of where a meter is.
	GSPGroup string
}

// distributors are the holders of the first two digits of an MPAN. New independent ones
// are licensed from time to time, so a number that is not here may be right.
var distributors = map[string]Distributor{
	"10": {"EELC", "UK Power Networks (Eastern)", "_A"},
	"11": {"EMEB", "National Grid Electricity Distribution (East Midlands)", "_B"},
	"12": {"LOND", "UK Power Networks (London)", "_C"},
	"13": {"MANW", "SP Energy Networks (Manweb: Merseyside & N Wales)", "_D"},
	"14": {"MIDE", "National Grid Electricity Distribution (West Midlands)", "_E"},
	"15": {"NEEB", "Northern Powergrid (North East)", "_F"},
	"16": {"NORW", "Electricity North West / SP ENW", "_G"},
	"17": {"HYDE", "SSEN (Scottish Hydro Electric, N Scotland)", "_P"},
	"18": {"SPOW", "SP Energy Networks (S Scotland)", "_N"},
	"19": {"SEEB", "UK Power Networks (South East)", "_J"},
	"20": {"SOUT", "SSEN (Southern)", "_H"},
	"21": {"SWAE", "National Grid Electricity Distribution (South Wales)", "_K"},
	"22": {"SWEB", "National Grid Electricity Distribution (South West)", "_L"},
	"23": {"YELG", "Northern Powergrid (Yorkshire)", "_M"},
	"24": {"IPNL", "Independent Power Networks Ltd (IPNL/GTC)", ""},
	"25": {"LENG", "ESP Electricity", ""},
	"26": {"GUCL", "Last Mile Electricity (ex Energetics/Global Utilities)", ""},
	"27": {"ETCL", "The Electricity Network Company (GTC)", ""},
	"28": {"EDFI", "UKPN IDNO (ex EDF IDNO)", ""},
	"29": {"HARL", "Harlaxton Energy Networks", ""},
	"30": {"PENL", "Leep Electricity Networks", ""},
	"31": {"UKPD", "UK Power Distribution", ""},
	"32": {"UDNL", "Energy Assets Networks (Utility Distribution Networks)", ""},
	"33": {"GGEN", "Eclipse Power Networks (Green Generation)", ""},
	"34": {"MPDL", "mua/Murphy Power Distribution", ""},
	"35": {"FEAL", "Fulcrum Electricity Assets", ""},
	"36": {"VATT", "Vattenfall Networks", ""},
	"37": {"FORB", "Optimal Power Networks (Forbury)", ""},
	"38": {"INDI", "Indigo Power", ""},
}
