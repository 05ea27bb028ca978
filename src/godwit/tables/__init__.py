"""Routing tables and matchers: who wants this event, and what must the neighbors know?"""
