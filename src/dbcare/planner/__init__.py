"""What would experimenting cost and bring before any data, depending on the gap between the arms?"""
