"""Parts of US payroll: input, FICA, Publication 15-T and claims."""
