package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
)

// debian writes the Debian package of an architecture as deploy/debian/nfpm.yaml says.
func debian(dist, version, arch string) error {
	settings := strings.NewReplacer(
		"${ARCH}",
		arch,
		"${DIST}",
		dist,
		"${VERSION}",
		version,
		"${DEBIAN}",
		strings.Replace(version, "-", "~", 1),
	) // so that a release comes after what led to it

	b, err := os.ReadFile("deploy/debian/nfpm.yaml")
	if err != nil {
		return err
	}

	config, err := nfpm.Parse(strings.NewReader(settings.Replace(string(b))))
	if err != nil {
		return err
	}

	if _, err := strconv.ParseInt(
		os.Getenv("SOURCE_DATE_EPOCH"),
		10,
		64,
	); err != nil {
		return fmt.Errorf(
			"SOURCE_DATE_EPOCH dates the package's files: %w",
			err,
		)
	}

	info, err := config.Get("deb")
	if err != nil {
		return err
	}

	f, err := os.Create(filepath.Join(dist, "flexd_"+version+"_"+arch+".deb"))
	if err != nil {
		return err
	}

	defer f.Close()
	if err := deb.Default.Package(nfpm.WithDefaults(info), f); err != nil {
		return err
	}

	return f.Close()
}
