// Command release makes of built programs what is shipped beside them: an OCI image from
// nothing for each Linux architecture, in one tar, Debian packages, and the list of what is
// linked (CycloneDX). It is run in the repository's folder.
// The same programs give the same bytes. It is a module of its own, so that what it needs is
// no dependency of flexd.
package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"debug/buildinfo"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func main() {
	dist := flag.String("dist", "dist", "folder with the built programs")
	version := flag.String("version", "", "version in their names")
	platforms := flag.String(
		"platforms",
		"linux/amd64 linux/arm64",
		"what was built; those of Linux are in the image",
	)

	flag.Parse()

	if err := run(*dist, *version, strings.Fields(*platforms)); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(dist, version string, platforms []string) error {
	name := filepath.Join(dist, "flexd-"+version)

	index := v1.ImageIndex(empty.Index)
	listed := ""

	for _, p := range platforms {
		arch, linux := strings.CutPrefix(p, "linux/")
		if !linux {
			continue
		}

		if err := debian(dist, version, arch); err != nil {
			return err
		}

		listed = cmp.Or(listed, name+"-linux-"+arch)

		i, err := image(name+"-linux-"+arch, arch, version)
		if err != nil {
			return err
		}

		platform := &v1.Platform{OS: "linux", Architecture: arch}
		index = mutate.AppendManifests(
			index,
			mutate.IndexAddendum{
				Add: i,
				Descriptor: v1.Descriptor{
					Platform: platform,
				},
			},
		)
	}

	if err := writeImage(oneImage(index, version), name+"-oci.tar"); err != nil {
		return err
	}

	return writeList(listed, version, name+".cdx.json")
}

// oneImage is an archive's list of a single image, which is the list of those of all architectures. What reads an
// archive refuses one with several images, as it could not know which is meant.
func oneImage(index v1.ImageIndex, version string) v1.ImageIndex {
	return mutate.AppendManifests(
		v1.ImageIndex(empty.Index),
		mutate.IndexAddendum{
			Add: index,
			Descriptor: v1.Descriptor{
				Annotations: map[string]string{"org.opencontainers.image.ref.name": "flexd:" + version},
			},
		},
	)
}

// nobody is the user of the image, who is in no list of users.
const nobody = 65532

// image is the program alone, and a folder for its records.
func image(program, arch, version string) (v1.Image, error) {
	b, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}

	var files bytes.Buffer
	w := tar.NewWriter(&files)

	for _, h := range []*tar.Header{
		{Name: "data/", Typeflag: tar.TypeDir, Mode: 0o700, Uid: nobody, Gid: nobody},
		{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777},
		{Name: "usr/bin/flexd", Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(b))},
	} {
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
	}

	if _, err := w.Write(b); err != nil {
		return nil, err
	}

	if err := w.Close(); err != nil {
		return nil, err
	}

	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files.Bytes())), nil
	})

	if err != nil {
		return nil, err
	}

	i, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}

	return mutate.ConfigFile(i, &v1.ConfigFile{
		OS: "linux", Architecture: arch, RootFS: rootOf(i),
		Config: v1.Config{
			User:         fmt.Sprintf("%d:%d", nobody, nobody),
			WorkingDir:   "/data",
			Volumes:      map[string]struct{}{"/data": {}},
			Env:          []string{"FLEXD_LISTEN=0.0.0.0:8080", "FLEXD_DATABASE=sqlite:/data/flexd.db"},
			ExposedPorts: map[string]struct{}{"8080/tcp": {}},
			Entrypoint:   []string{"/usr/bin/flexd"},
			Cmd:          []string{"serve"},
			Labels: map[string]string{
				"org.opencontainers.image.title":   "flexd",
				"org.opencontainers.image.version": version,
			},
		},
	})
}

// rootOf keeps the layers of an image whose other settings are replaced.
func rootOf(i v1.Image) v1.RootFS {
	c, err := i.ConfigFile()
	if err != nil {
		panic(err) // it was made in memory
	}

	return c.RootFS
}

// writeImage writes an index as an OCI layout in a tar, its files in order.
func writeImage(index v1.ImageIndex, to string) error {
	dir, err := os.MkdirTemp("", "flexd-image-")
	if err != nil {
		return err
	}

	defer os.RemoveAll(dir)
	if _, err := layout.Write(dir, index); err != nil {
		return err
	}

	f, err := os.Create(to)
	if err != nil {
		return err
	}

	defer f.Close()
	w := tar.NewWriter(f)

	err = fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error { // in the order of names
		if err != nil || d.IsDir() {
			return err
		}

		b, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{
			Name:     path,
			Typeflag: tar.TypeReg,
			Mode:     0o644,
			Size:     int64(len(b)),
		}); err != nil {
			return err
		}

		_, err = w.Write(b)
		return err
	})
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}

	return f.Close()
}

// writeList writes which modules a program was linked from.
func writeList(program, version, to string) error {
	built, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}

	list := cdx.NewBOM()
	list.Metadata = &cdx.Metadata{Component: &cdx.Component{
		Type:    cdx.ComponentTypeApplication,
		BOMRef:  "flexd",
		Name:    "flexd",
		Version: version,
	}}

	parts := []cdx.Component{component("stdlib", built.GoVersion[len("go"):])}
	for _, m := range built.Deps {
		parts = append(parts, component(path(m)))
	}

	list.Components = &parts
	f, err := os.Create(to)
	if err != nil {
		return err
	}

	defer f.Close()
	if err := cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true).Encode(list); err != nil {
		return err
	}

	return f.Close()
}

// path is the module that was linked: the one that stands in for it, if there is one.
func path(m *debug.Module) (name, version string) {
	if m.Replace != nil {
		return m.Replace.Path, m.Replace.Version
	}
	return m.Path, m.Version
}

func component(name, version string) cdx.Component {
	url := "pkg:golang/" + name + "@" + version
	return cdx.Component{
		Type:       cdx.ComponentTypeLibrary,
		BOMRef:     url,
		Name:       name,
		Version:    version,
		PackageURL: url,
	}
}
