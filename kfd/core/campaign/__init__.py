"""Campaigns: their lifecycle, their candidates and their budget."""
