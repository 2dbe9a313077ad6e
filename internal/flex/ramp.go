package flex

// Ramp is how much planned power may move in a minute, up or down. Zero does not limit it.
type Ramp struct {
	All   Watts // of all that one flexd steers
	Group Watts // of each GSP group, and of each constraint group
}
