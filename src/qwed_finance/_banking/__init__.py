"""Parts of `verify_banking_scenario`: what a scenario says, what it comes to, what the reasoning claims."""
