"""The import names of the published documents; everything here lives in `qwed`."""
