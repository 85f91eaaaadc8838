"""The parts of US payroll: what is asked, what FICA and Publication 15-T come to, and what was claimed."""
