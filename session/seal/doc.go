// Package seal encrypts what a store keeps, each record by itself and bound to its place, so that it opens nowhere else.
//
// The cipher is XAES-256-GCM (https://c2sp.org/XAES-256-GCM): AES-256-GCM under a key that is derived, for each record,
// from the long-lived one and half of a random nonce of 192 bits. AES-GCM with its own nonce of 96 random bits would be
// bound to 2^32 records a key (NIST SP 800-38D, section 8.3), which one busy proxy writes within months, and there is no
// counter that replicas could share. With 192 bits the same risk, 2^-32, is reached after 2^80 records: keys need to be
// changed for other reasons only.
package seal
