"""Every verb of the client, written once: generators of requests, in the order the protocol tells them."""
