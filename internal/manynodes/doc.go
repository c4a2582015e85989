// Package manynodes goes through the life of an experiment on hundreds of hosts,
// and measures what dlwb takes here for it. The hosts are ssh servers of one
// process, each with an address, a key and a home of its own; what runs on them is
// dlwb's real agent.
package manynodes
