"""Operations of the API, each a generator of requests that both clients run."""
