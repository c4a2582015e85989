#!/bin/sh
# What give, take, receive and large begin with: the SHA-256 of the input, by
# what the node has for it.
digest() {
	if command -v openssl >/dev/null 2>&1; then
		openssl dgst -sha256 -r
	elif command -v sha256sum >/dev/null 2>&1; then
		sha256sum
	else
		shasum -a 256
	fi | cut -d ' ' -f 1
}
