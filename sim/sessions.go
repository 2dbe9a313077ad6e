package sim

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/csv"
	"fmt"
	"strconv"
	"time"

	"flexd/internal/flex"
)

//go:embed data/ev_sessions_jpl_2019.csv.gz
var sessionsJPL []byte

// RealSession is a charging session that somebody had.
type RealSession struct {
	Arrival  flex.WallTime
	Stay     time.Duration
	Wanted   flex.WattHours
	Received flex.WattHours
}

// RealSessions returns the sessions of the sample, in their order, those left out that
// lasted less than an hour or asked for nothing. See data/SOURCES.md for where they are from.
func RealSessions() ([]RealSession, error) {
	zr, err := gzip.NewReader(bytes.NewReader(sessionsJPL))
	if err != nil {
		return nil, err
	}

	records, err := csv.NewReader(zr).ReadAll()
	if err != nil {
		return nil, err
	}

	var out []RealSession
	for i, r := range records[1:] {
		var at [2]time.Time
		var kwh [2]float64

		for j := range 2 {
			at[j], err = time.Parse("2006-01-02 15:04:05-07:00", r[j])
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", i+2, err)
			}
			if r[2+j] == "" {
				continue // nothing was asked for
			}

			kwh[j], err = strconv.ParseFloat(r[2+j], 64)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", i+2, err)
			}
		}

		s := RealSession{
			Stay:     at[1].Sub(at[0]).Truncate(time.Minute),
			Wanted:   flex.FromKWh(kwh[0]),
			Received: flex.FromKWh(kwh[1]),
		}

		h, m, _ := at[0].Clock()
		s.Arrival = flex.WallTime(time.Duration(h)*time.Hour +
			time.Duration(m)*time.Minute)
		if s.Stay >= time.Hour && s.Wanted > 0 {
			out = append(out, s)
		}
	}

	return out, nil
}
