// Package workbench is the life of an experiment: plan → up → prepare → sync →
// launch → watch → fetch → down. It owns state, events, the store and the
// ledger, and knows no terminal and no colour. The screen and the headless
// commands both drive it.
package workbench
