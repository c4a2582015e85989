// Package store is the memory of dlwb: one SQLite file that several processes
// write at once. It has rows of its own and knows no other package's types;
// what others keep in it beside the columns is JSON that it never reads.
package store
