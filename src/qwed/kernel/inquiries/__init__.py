"""Questions to the engines that no agent asks: a claim and its verdict, without trust, budget or decision."""
