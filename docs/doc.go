// Package docs embeds the pages of the manual that a running flexd serves.
package docs
