package v1beta2

import "strings"

// isAgeRecipient reports whether text is the public key of an age X25519 identity: Bech32 of 32 bytes with the prefix
// age (https://age-encryption.org/v1, BIP 173). Its checksum finds what is misspelt: a backup to a key that nobody has
// would be noticed only when it is needed.
func isAgeRecipient(text string) bool {
	const (
		prefix  = "age"
		letters = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
		symbols = 52 + 6 // 256 bits in groups of five, and the checksum
	)
	data, ok := strings.CutPrefix(text, prefix+"1")
	if !ok || len(data) != symbols {
		return false
	}
	values := make([]int, 0, 2*len(prefix)+1+symbols)
	for _, c := range prefix {
		values = append(values, int(c)>>5)
	}
	values = append(values, 0)
	for _, c := range prefix {
		values = append(values, int(c)&31)
	}
	for _, c := range data {
		value := strings.IndexRune(letters, c)
		if value < 0 {
			return false
		}
		values = append(values, value)
	}
	return bech32Sum(values) == 1
}

// bech32Sum is the checksum of BIP 173; it is 1 where nothing is misspelt.
func bech32Sum(values []int) int {
	generators := [...]int{0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3}
	sum := 1
	for _, value := range values {
		top := sum >> 25
		sum = sum&0x1ffffff<<5 ^ value
		for i, generator := range generators {
			if top>>i&1 == 1 {
				sum ^= generator
			}
		}
	}
	return sum
}
