package control

// FusedSites is which sites are read one by one for their main fuse.
var FusedSites = limitedSites
