"""The tests. They mirror the packages they test."""
